#!/usr/bin/env bash
# OpenSearch 2.19.3 (the distribution that deploy/local/engine starts). Needs bash, curl, Python 3 with pip (for a Java 21) and Maven.
#
# What happens: a `term` query on a `wildcard` field takes an asterisk in its value for a pattern, while `terms` with the same single value is
# exact, as both are on a `keyword`; and a `wildcard` query whose only asterisk is escaped, which should find the value with an asterisk, finds
# nothing. So a value with an asterisk, such as the HLA allele "HLA-A*02:01", is found together with other alleles, or not at all, by how many
# values are asked for. Use `terms`, also for one value. (3.2 and 3.8 answer both as a keyword does.)
#
# Output seen (EXPECTED), the documents found of "A*02" and "A-1.02":
#   keyword, term "A*02": 1
#   wildcard, term "A*02": 2
#   wildcard, terms ["A*02"]: 1
#   keyword, wildcard "A\*02": 1
#   wildcard, wildcard "A\*02": 0
#
# Ends with an error if a line is another one.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
chmod 755 "$dir" # the engine runs as another user
export TUTTI_SERVICES_DIR=$dir TUTTI_ENGINE_PORT=19395 TUTTI_ES_HEAP=512m
trap '"$here/deploy/local/engine/stop" opensearch-2 >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
expected=$(sed -n '/^# Output seen/,/^#$/s/^#   //p' "$0")
"$here/deploy/local/engine/start" opensearch-2 >/dev/null 2>&1
url=http://127.0.0.1:$TUTTI_ENGINE_PORT
ask() { curl -sf -H 'Content-Type: application/json' "$@"; }
ask -X PUT "$url/alleles" -d '{"mappings":{"properties":{"k":{"type":"keyword"},"w":{"type":"wildcard"}}}}' >/dev/null
for value in 'A*02' 'A-1.02'; do ask -X POST "$url/alleles/_doc?refresh=true" -d "{\"k\":\"$value\",\"w\":\"$value\"}" >/dev/null; done
count() { # WORDS QUERY
  printf '%s: ' "$1"
  ask "$url/alleles/_count" -d "{\"query\":$2}" | grep -oE '"count":[0-9]+' | cut -d: -f2
}
{
  count 'keyword, term "A*02"' '{"term":{"k":"A*02"}}'
  count 'wildcard, term "A*02"' '{"term":{"w":"A*02"}}'
  count 'wildcard, terms ["A*02"]' '{"terms":{"w":["A*02"]}}'
  count 'keyword, wildcard "A\*02"' '{"wildcard":{"k":"A\\*02"}}'
  count 'wildcard, wildcard "A\*02"' '{"wildcard":{"w":"A\\*02"}}'
} | tee "$dir/output"
diff <(echo "$expected") "$dir/output" || {
  echo "the behaviour has changed" >&2
  exit 1
}
