#!/usr/bin/env bash
# OpenSearch 3.2.0 (the distribution that deploy/local/engine starts). Needs bash, curl, Python 3 with pip (for a Java 21) and Maven.
#
# What happens: a `term` or `terms` query on a `constant_keyword` takes an asterisk in its value for a pattern, although both promise exact values
# and do so on a `keyword`. So a document whose constant is "red" is found by the term "r*", and "not the value *" excludes every document. A question
# mark is itself. Compare with the constant of the mapping before the engine is asked.
#
# Output seen (EXPECTED), the documents found of one with "red" in both fields:
#   keyword, term "r*": 0
#   constant_keyword, term "r*": 1
#   constant_keyword, terms ["x","r*"]: 1
#   constant_keyword, not the term "*": 0
#   constant_keyword, term "r?d": 0
#
# Ends with an error if a line is another one.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
chmod 755 "$dir" # the engine runs as another user
export TUTTI_SERVICES_DIR=$dir TUTTI_ENGINE_PORT=19393 TUTTI_ES_HEAP=512m
trap '"$here/deploy/local/engine/stop" opensearch-3 >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
expected=$(sed -n '/^# Output seen/,/^#$/s/^#   //p' "$0")
"$here/deploy/local/engine/start" opensearch-3 >/dev/null 2>&1
url=http://127.0.0.1:$TUTTI_ENGINE_PORT
ask() { curl -sf -H 'Content-Type: application/json' "$@"; }
ask -X PUT "$url/colours" -d '{"mappings":{"properties":{"k":{"type":"keyword"},"c":{"type":"constant_keyword","value":"red"}}}}' >/dev/null
ask -X POST "$url/colours/_doc?refresh=true" -d '{"k":"red","c":"red"}' >/dev/null
count() { # WORDS QUERY
  printf '%s: ' "$1"
  ask "$url/colours/_count" -d "{\"query\":$2}" | grep -oE '"count":[0-9]+' | cut -d: -f2
}
{
  count 'keyword, term "r*"' '{"term":{"k":"r*"}}'
  count 'constant_keyword, term "r*"' '{"term":{"c":"r*"}}'
  count 'constant_keyword, terms ["x","r*"]' '{"terms":{"c":["x","r*"]}}'
  count 'constant_keyword, not the term "*"' '{"bool":{"must_not":[{"term":{"c":"*"}}]}}'
  count 'constant_keyword, term "r?d"' '{"term":{"c":"r?d"}}'
} | tee "$dir/output"
diff <(echo "$expected") "$dir/output" || {
  echo "the behaviour has changed" >&2
  exit 1
}
