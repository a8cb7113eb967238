#!/usr/bin/env bash
# OpenSearch 3.2.0 (the distribution that deploy/local/engine starts). Needs bash, curl, Python 3 with pip (for a Java 21) and Maven.
#
# GUESS: see the lines.
#
# Output seen (EXPECTED):
#   without doc_values, query: 200
#   without doc_values, terms: 400
#   without doc_values, sort: 400
#   with doc_values, query: 200
#   with doc_values, terms: 500 exists in doc values but not in the terms index
#   with doc_values, sort: 500 exists in doc values but not in the terms index
#
# Ends with an error if a line is another one.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
chmod 755 "$dir" # the engine runs as another user
export TUTTI_SERVICES_DIR=$dir TUTTI_ENGINE_PORT=19394 TUTTI_ES_HEAP=512m
trap '"$here/deploy/local/engine/stop" opensearch-3 >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
expected=$(sed -n '/^# Output seen/,/^#$/s/^#   //p' "$0")
"$here/deploy/local/engine/start" opensearch-3 >/dev/null 2>&1
url=http://127.0.0.1:$TUTTI_ENGINE_PORT
ask() { curl -s -H 'Content-Type: application/json' "$@"; }
create() { # INDEX MAPPING
  ask -f -X PUT "$url/$1" -d "{\"mappings\":{\"properties\":{\"w\":$2}}}" >/dev/null
  ask -f -X PUT "$url/$1/_doc/1?refresh=true" -d '{"w":"apple"}' >/dev/null
  ask -f -X PUT "$url/$1/_doc/2?refresh=true" -d '{"w":"pear"}' >/dev/null
}
search() { # WORDS INDEX BODY
  local status
  status=$(ask -o "$dir/answer" -w '%{http_code}' "$url/$2/_search" -d "$3")
  echo "$1: $status$(grep -oE ' exists in doc values but not in the terms? index' "$dir/answer" | head -n 1 || true)"
  if [ -n "${VERBOSE:-}" ]; then cut -c1-1500 "$dir/answer" >&2; echo >&2; fi
}
create plain '{"type":"wildcard"}'
create columns '{"type":"wildcard","doc_values":true}'
{
  search 'without doc_values, query' plain '{"query":{"wildcard":{"w":"*ppl*"}}}'
  search 'without doc_values, terms' plain '{"size":0,"aggs":{"a":{"terms":{"field":"w"}}}}'
  search 'without doc_values, sort' plain '{"sort":["w"]}'
  search 'with doc_values, query' columns '{"query":{"wildcard":{"w":"*ppl*"}}}'
  search 'with doc_values, terms' columns '{"size":0,"aggs":{"a":{"terms":{"field":"w"}}}}'
  search 'with doc_values, sort' columns '{"sort":["w"]}'
} | tee "$dir/output"
diff <(echo "$expected") "$dir/output" || {
  echo "the behaviour has changed" >&2
  exit 1
}
