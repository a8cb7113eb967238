#!/usr/bin/env bash
# Elasticsearch 8.19.21 (the distribution that deploy/local/engine starts). Needs bash, curl, Java 17 and Maven.
#
# GUESS: two shards, [2020] on one and [2000, 2010] on the other, order by the sum, descending; pages of one without totals.
# After the first shard the last value of the page is compared with the dates of the second shard, not with their sums, and the shard is skipped.
#
# Output seen (EXPECTED):
#   pages by the sum, missing _last: one
#   pages by the sum, missing a number: two one
#   pages by the max, missing _last: one two
#   pages by the sum, missing _last, totals tracked: two one
#   total of the first page: 2
#
# Ends with an error if a line is another one.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
chmod 755 "$dir" # the engine runs as another user
export TUTTI_SERVICES_DIR=$dir TUTTI_ES_PORT=19291 TUTTI_ES_HEAP=512m
trap '"$here/deploy/local/engine/stop" >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
expected=$(sed -n '/^# Output seen/,/^#$/s/^#   //p' "$0")
"$here/deploy/local/engine/start" >/dev/null 2>&1
url=http://127.0.0.1:$TUTTI_ES_PORT
ask() { curl -sf -H 'Content-Type: application/json' "$@"; }
ask -X PUT "$url/times" -d '{"settings":{"number_of_shards":2},"mappings":{"properties":{"at":{"type":"date"}}}}' >/dev/null
ask -X PUT "$url/times/_doc/one?routing=a&refresh=true" -d '{"at":"2020-01-01"}' >/dev/null
ask -X PUT "$url/times/_doc/two?routing=b&refresh=true" -d '{"at":["2000-01-01","2010-01-01"]}' >/dev/null
if [ "$(ask "$url/_cat/shards/times?h=docs&s=shard&format=json" | grep -o '"docs":"1"' | wc -l)" != 2 ]; then
  echo "the documents are not on two shards" >&2
  exit 1
fi
pages() { # WORDS MODE MISSING TOTALS
  local pit after='' answer page
  pit=$(ask -X POST "$url/times/_pit?keep_alive=1m" | grep -oE '"id":"[^"]+"')
  printf '%s:' "$1"
  for page in 1 2 3; do
    answer=$(ask "$url/_search?max_concurrent_shard_requests=1" -d "{\"size\":1,\"track_total_hits\":$4,\"pit\":{$pit},
      \"sort\":[{\"at\":{\"order\":\"desc\",\"mode\":\"$2\",\"missing\":$3}}]$after}")
    if [ "$page" = 1 ]; then echo "$answer" >"$dir/first"; fi
    grep -q '"_id"' <<<"$answer" || break
    printf ' %s' "$(grep -oE '"_id":"[^"]+"' <<<"$answer" | cut -d'"' -f4)"
    after=",\"search_after\":$(grep -oE '"sort":\[[^]]+\]' <<<"$answer" | cut -d: -f2)"
  done
  echo
}
{
  pages 'pages by the sum, missing _last' sum '"_last"' false
  pages 'pages by the sum, missing a number' sum -9223372036854775808 false
  pages 'pages by the max, missing _last' max '"_last"' false
  pages 'pages by the sum, missing _last, totals tracked' sum '"_last"' true
  printf 'total of the first page: '
  grep -oE '"total":\{"value":[0-9]+' "$dir/first" | cut -d: -f3
} | tee "$dir/output"
diff <(echo "$expected") "$dir/output" || {
  echo "the behaviour has changed" >&2
  exit 1
}
