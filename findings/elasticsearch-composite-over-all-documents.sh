#!/usr/bin/env bash
# Elasticsearch 8.19.21 (the distribution that deploy/local/engine starts). Needs bash, curl, Python, Java 17 and Maven.
#
# What happens: 200 documents have 1,000 keywords each, 200,000 values in all. Reading all values by a composite aggregation, in pages of 65,000,
# takes several times as long with `match_all` (or without a query) as with a query that all documents match as well, such as a `must_not` of
# an id that does not exist; the buckets are the same. Seen besides, with 325,000 values: 7.8 s and 0.4 s here, 39 s and 0.5 s with
# Elasticsearch 7.17.28, and with one value in each document 2.0 s and 0.5 s here, 3.3 s and 0.4 s with OpenSearch 3.2.0.
# `missing_bucket`, or a smaller page, does not help.
#
# Probable cause: only over all documents, the values are visited in the order of the index of the field: for each value its documents, and
# for each of these all of its values.
#
# Output seen (EXPECTED):
#   buckets: 200000 and 200000
#   match_all takes more than 4 times as long
#
# Ends with an error if a line is another one.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
chmod 755 "$dir" # the engine runs as another user
export TUTTI_SERVICES_DIR=$dir TUTTI_ES_PORT=19292 TUTTI_ES_HEAP=1g
trap '"$here/deploy/local/engine/stop" >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
expected=$(sed -n '/^# Output seen/,/^#$/s/^#   //p' "$0")
"$here/deploy/local/engine/start" >/dev/null 2>&1
python3 - "http://127.0.0.1:$TUTTI_ES_PORT" <<'PYTHON' | tee "$dir/output"
import json, statistics, sys, urllib.request

def ask(method, path, body, kind="application/json"):
    request = urllib.request.Request(sys.argv[1] + path, body.encode(), {"Content-Type": kind}, method=method)
    return json.load(urllib.request.urlopen(request))

ask("PUT", "/all", '{"settings":{"number_of_shards":1},"mappings":{"properties":{"k":{"type":"keyword"}}}}')
lines = "".join('{"index":{}}\n' + json.dumps({"k": [f"v{i:06}" for i in range(first, first + 1000)]}) + "\n" for first in range(0, 200_000, 1000))
ask("POST", "/all/_bulk?refresh=true", lines, "application/x-ndjson")

def read(query):
    buckets, took, after = 0, 0, {}
    while True:
        pages = {"composite": {"size": 65_000, "sources": [{"v": {"terms": {"field": "k"}}}], **after}}
        answer = ask("POST", "/all/_search?request_cache=false", json.dumps({"size": 0, "query": query, "aggs": {"a": pages}}))
        took += answer["took"]
        buckets += len(answer["aggregations"]["a"]["buckets"])
        if "after_key" not in answer["aggregations"]["a"]:
            return buckets, took
        after = {"after": answer["aggregations"]["a"]["after_key"]}

everything = {"match_all": {}}
but_one_id = {"bool": {"must_not": {"term": {"_id": "no such id"}}}}
runs = [(read(everything), read(but_one_id)) for _ in range(4)][1:]
print(f"buckets: {runs[0][0][0]} and {runs[0][1][0]}")
ratio = statistics.median(run[0][1] for run in runs) / statistics.median(run[1][1] for run in runs)
print("measured ratio of times:", round(ratio, 1), file=sys.stderr)
print(f"match_all takes {'more than' if ratio > 4 else 'at most'} 4 times as long")
PYTHON
diff <(echo "$expected") "$dir/output" || {
  echo "the behaviour has changed" >&2
  exit 1
}
