"""Asks a server from eight threads until so many answers came whole, then kills it in the middle; prints how many came.

    audit_load.py URL ANSWERS PID
"""

import http.client
import json
import os
import signal
import sys
import threading
import urllib.parse

url, wanted, process = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
place = urllib.parse.urlsplit(url)
lock = threading.Lock()
answered = 0


def ask(thread):
    """Whole and streamed answers in turn, on a connection that stays open."""
    global answered
    connection = http.client.HTTPConnection(place.hostname, place.port)
    for number in range(10**9):
        is_stream = number % 2 == 0
        body = {"prompt": f"{thread} {number}", "max_tokens": 2, "seed": number, "stream": is_stream}
        try:
            connection.request("POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"})
            text = connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return
        is_whole = text.endswith(b"data: [DONE]\n\n") if is_stream else b'"finish_reason"' in text
        if not is_whole:
            return
        with lock:
            answered += 1
            if answered == wanted:
                os.kill(process, signal.SIGKILL)


threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(answered)
