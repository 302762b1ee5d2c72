"""How sure a panel is when it is right, and when it is wrong.

    python python/examples/confidence.py RUN confidence.png
"""

import sys

import matplotlib

import wardround

matplotlib.use("Agg")
run = wardround.read(sys.argv[1])
confidences = run.items.dropna(subset=["is_correct", "team_confidence"]).groupby("is_correct")["team_confidence"]
print(confidences.describe()[["count", "mean"]])
axes = confidences.plot.hist(bins=10, range=(0, 1), alpha=0.6, legend=True).iloc[0]
axes.set(xlabel="team confidence", ylabel="questions", title=f"{run.plan['system']} on {run.plan['dataset']['name']}")
axes.figure.savefig(sys.argv[2])
