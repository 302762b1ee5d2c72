"""How the replies of a run were read, from its calls alone: what results.json calls `parse_health`.

Shares no code with the program; the scripts beside it import it. What the replies are besides, void, looping, cut or contradictory, is
taken as it stands in the results: the program's own tests hold it against replies that people judged.
"""

KINDS = ("ok", "repaired", "fallback", "refused", "unread")
HOLLOW = ("void", "looping", "cut", "contradictory")


def parse_health(calls, found):
    """The shares of calls that were read in each way, with what `found` has besides; None without calls."""
    if not calls:
        return None
    health = {how: sum(call["parse"] == how for call in calls) / len(calls) for how in KINDS}
    return health | {name: found[name] for name in HOLLOW if name in (found or {})}


def warnings(healths):
    """How many figures the warnings name: once for what could not be read, once for what says nothing."""
    healths = [health for health in healths if health]
    poor = sum(health["unread"] > 0.05 for health in healths)
    return poor + sum(any(health.get(name, 0.0) > 0.1 for name in HOLLOW) for health in healths)
