#!/usr/bin/env bash
# OpenSearch 3.8.0 (the distribution that deploy/local/engine starts). Needs bash, curl, python3, a JDK from 21 on and Maven.
#
# What happens: 2,000 documents with a value of a scaled_float are read by pages of 100 in the order of that field, with _doc as the last key and
# search_after. The pages end long before the last document, without an error. With "track_scores": true, which should change nothing but the
# scores, the same pages have all documents; so they have for a field of type double with the same values. OpenSearch 3.2.0 returns all documents.
#
# Output seen (EXPECTED):
#   scaled_float: some of 2000 documents
#   scaled_float with track_scores: 2000 of 2000 documents
#   double: 2000 of 2000 documents
#
# Ends with an error if that is different.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
chmod 755 "$dir" # the engine runs as another user
export TUTTI_SERVICES_DIR=$dir TUTTI_ENGINE_PORT=19291 TUTTI_ES_HEAP=512m
trap '"$here/deploy/local/engine/stop" opensearch-3.8 >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
expected=$(sed -n '/^# Output seen/,/^#$/s/^#   //p' "$0")
"$here/deploy/local/engine/start" opensearch-3.8 >/dev/null 2>&1
python3 - "http://127.0.0.1:$TUTTI_ENGINE_PORT/numbers" <<'PY' | tee "$dir/output"
import json, sys, urllib.request

url = sys.argv[1]

def ask(method, path, body):
    request = urllib.request.Request(url + path, body.encode(), {"Content-Type": "application/json"}, method=method)
    return json.load(urllib.request.urlopen(request))

ask("PUT", "", json.dumps({"settings": {"number_of_replicas": 0}, "mappings": {"properties": {
    "id": {"type": "keyword"}, "scaled": {"type": "scaled_float", "scaling_factor": 100}, "double": {"type": "double"}}}}))
ask("POST", "/_bulk?refresh=true", "".join(
    '{"index":{}}\n' + json.dumps({"id": "%04d" % i, "scaled": i * 7 % 1000 / 4, "double": i * 7 % 1000 / 4}) + "\n" for i in range(2000)))

def pages(field, **more):
    ids, after = set(), {}
    while True:
        hits = ask("POST", "/_search", json.dumps({"size": 100, "_source": False, "sort": [{field: "asc"}, {"id": "asc"}], **after, **more}))["hits"]["hits"]
        ids.update(hit["_id"] for hit in hits)
        if len(hits) < 100:
            return "2000" if len(ids) == 2000 else "some"
        after = {"search_after": hits[-1]["sort"]}

print("scaled_float:", pages("scaled"), "of 2000 documents")
print("scaled_float with track_scores:", pages("scaled", track_scores=True), "of 2000 documents")
print("double:", pages("double"), "of 2000 documents")
PY
diff <(echo "$expected") "$dir/output" || {
  echo "the behaviour has changed" >&2
  exit 1
}
