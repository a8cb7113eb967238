#!/usr/bin/env bash
# Elasticsearch 8.19.21 (the distribution that deploy/local/engine starts). Needs bash, curl, Java 17 and Maven.
#
# What happens: a date field with `"format": "epoch_second"` takes the JSON number 1577923200 in a document as seconds, as its format says. In a
# query the same number is always taken as milliseconds, whatever the format says, so that a term, terms or range query with a number finds
# nothing, without an error, though the number comes from the document; the milliseconds as a number find it. As a text the number follows the
# format. A client that passes on a value that it read in a document must make it a text first.
#
# Output seen (EXPECTED):
#   term, number of seconds: 0
#   term, text of seconds: 1
#   term, number of milliseconds: 1
#   terms, number of seconds: 0
#   range, number of seconds: 0
#   range, text of seconds: 1
#
# Ends with an error if a count is another one.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
chmod 755 "$dir" # the engine runs as another user
export TUTTI_SERVICES_DIR=$dir TUTTI_ES_PORT=19290 TUTTI_ES_HEAP=512m
trap '"$here/deploy/local/engine/stop" >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
expected=$(sed -n '/^# Output seen/,/^#$/s/^#   //p' "$0")
"$here/deploy/local/engine/start" >/dev/null 2>&1
url=http://127.0.0.1:$TUTTI_ES_PORT
ask() { curl -sf -H 'Content-Type: application/json' "$@"; }
ask -X PUT "$url/times" -d '{"mappings":{"properties":{"at":{"type":"date","format":"epoch_second"}}}}' >/dev/null
ask -X PUT "$url/times/_doc/1?refresh=true" -d '{"at":1577923200}' >/dev/null
count() { # WORDS QUERY
  printf '%s: ' "$1"
  ask "$url/times/_count" -d "{\"query\":$2}" | grep -oE '"count":[0-9]+' | cut -d: -f2
}
{
  count 'term, number of seconds' '{"term":{"at":1577923200}}'
  count 'term, text of seconds' '{"term":{"at":"1577923200"}}'
  count 'term, number of milliseconds' '{"term":{"at":1577923200000}}'
  count 'terms, number of seconds' '{"terms":{"at":[1577923200]}}'
  count 'range, number of seconds' '{"range":{"at":{"gte":1577923200,"lte":1577923200}}}'
  count 'range, text of seconds' '{"range":{"at":{"gte":"1577923200","lte":"1577923200"}}}'
} | tee "$dir/output"
diff <(echo "$expected") "$dir/output" || {
  echo "the behaviour has changed" >&2
  exit 1
}
