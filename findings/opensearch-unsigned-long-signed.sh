#!/usr/bin/env bash
# OpenSearch 3.2.0 (the distribution that deploy/local/engine starts). Needs bash, curl, Python 3 with pip (for a Java 21) and Maven.
#
# What happens: several values of an `unsigned_long` in one document are compared as if they had a sign, or wrongly otherwise.
# - 40 documents have [2, 18446744073709551615]. A `term` filter for 2 finds them all, and none together with a second filter that few documents
#   match (`ids`). With [1, 2] in all documents it finds the one.
# - The value of a sort by the lowest of [0, 2] (mode `min`) is 2.
# - The aggregation `cardinality` takes 18446744073709551614 and 18446744073709551615, which are the same floating-point number, as one value.
#
# Output seen (EXPECTED):
#   term 2: 40
#   term 2 and one id: 0
#   term 18446744073709551615 and one id: 1
#   term 2 and one id, all with [1, 2]: 1
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
fill() { # INDEX VALUES...: one document for each, with its place from 1 as its id
  local index=$1 id=0 value
  shift
  ask -X PUT "$url/$index" -d '{"settings":{"number_of_shards":1},"mappings":{"properties":{"n":{"type":"unsigned_long"}}}}' >/dev/null
  for value in "$@"; do
    id=$((id + 1))
    printf '{"index":{"_id":"%s"}}\n{"n":%s}\n' "$id" "$value"
  done >"$dir/bulk"
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
  count 'term 2 and one id, all with [1, 2]' small '{"term":{"n":2}},{"ids":{"values":["7"]}}'
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
