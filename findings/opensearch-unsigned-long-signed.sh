#!/usr/bin/env bash
# OpenSearch 3.2.0 (the distribution that deploy/local/engine starts). Needs bash, curl, Python 3 with pip (for a Java 21) and Maven.
#
# GUESS: see the lines.
#
# Output seen (EXPECTED):
#   term 2: 40
#   term 2 and one id: 0
#   term 18446744073709551615 and one id: 1
#   term 2 and one id, no value beyond the limit of long: 1
#   lowest of [2, 18446744073709551615]: 2
#   highest of [2, 18446744073709551615]: 18446744073709551615
#   lowest of [0, 2]: 2
#   highest of [0, 2]: 2
#   different values of [18446744073709551614] and [18446744073709551615]: 1
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
create() { # INDEX
  ask -X PUT "$url/$1" -d '{"settings":{"number_of_shards":1},"mappings":{"properties":{"n":{"type":"unsigned_long"}}}}' >/dev/null
}
fill() { # INDEX VALUES...: one document for each
  local index=$1
  shift
  create "$index"
  awk 'NR % 2 { sub(/\{\}/, "{\"_id\":\"" (NR + 1) / 2 "\"}") } { print }' <(for value in "$@"; do printf '{"index":{}}\n{"n":%s}\n' "$value"; done) >"$dir/bulk"
  ask -X POST "$url/$index/_bulk?refresh=true" --data-binary "@$dir/bulk" >/dev/null
}
count() { # WORDS INDEX CLAUSES
  printf '%s: ' "$1"
  ask "$url/$2/_count" -d "{\"query\":{\"bool\":{\"filter\":[$3]}}}" | grep -oE '"count":[0-9]+' | cut -d: -f2
}
value() { # WORDS INDEX MODE
  printf '%s: ' "$1"
  ask "$url/$2/_search" -d "{\"size\":1,\"sort\":[{\"n\":{\"order\":\"asc\",\"mode\":\"$3\"}}]}" | grep -oE '"sort":\[[^]]+' | cut -d'[' -f2
}
mapfile -t many < <(for _ in $(seq 40); do echo '[2,18446744073709551615]'; done)
mapfile -t small < <(for _ in $(seq 40); do echo '[1,2]'; done)
fill many "${many[@]}"
fill small "${small[@]}"
fill zero '[0,2]'
fill near 18446744073709551614 18446744073709551615
{
  count 'term 2' many '{"term":{"n":2}}'
  count 'term 2 and one id' many '{"term":{"n":2}},{"ids":{"values":["7"]}}'
  count 'term 18446744073709551615 and one id' many '{"term":{"n":18446744073709551615}},{"ids":{"values":["7"]}}'
  count 'term 2 and one id, no value beyond the limit of long' small '{"term":{"n":2}},{"ids":{"values":["7"]}}'
  value 'lowest of [2, 18446744073709551615]' many min
  value 'highest of [2, 18446744073709551615]' many max
  value 'lowest of [0, 2]' zero min
  value 'highest of [0, 2]' zero max
  printf 'different values of [18446744073709551614] and [18446744073709551615]: '
  ask "$url/near/_search" -d '{"size":0,"aggs":{"c":{"cardinality":{"field":"n"}}}}' | grep -oE '"c":\{"value":[0-9]+' | cut -d: -f3
} | tee "$dir/output"
diff <(echo "$expected") "$dir/output" || {
  echo "the behaviour has changed" >&2
  exit 1
}
