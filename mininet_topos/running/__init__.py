"""Running experiments: workers side by side, flows as processes inside topologies, results.

results     what a results directory holds: versioned JSON, written whole or not at all
machine     what must be known of the machine to judge a result
schedule    which runs may go side by side
runner      the parent: starts a worker process per run, shows progress, writes results
worker      one run: a topology, its flows, their records
programs    how each kind of flow is started
inside/     programs of ours that run in a topology's hosts
"""
