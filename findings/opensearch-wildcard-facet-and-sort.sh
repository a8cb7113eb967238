#!/usr/bin/env bash
# OpenSearch 3.2.0 (the distribution that deploy/local/engine starts). Needs bash, curl, Python 3 with pip (for a Java 21) and Maven.
#
# What happens: a `wildcard` field can be queried, but `terms` aggregations and sorts of it answer 400 and ask for doc values. With
# `doc_values: true`, which the mapping takes, and two documents, apple and pear:
# - `terms` without a query answers 200 without a bucket. With `execution_hint: map`, or with a query for the ids of both, it has both buckets.
# - A page of a sort that does not have all documents fails with status 500 when the sort is descending or has `search_after`: "Term [...] exists in
#   doc values but not in the terms index". The first page of an ascending sort is right, and one page of both documents in either direction.
#
# Probable cause: this code reads the field's terms from the index, where a `wildcard` field has only parts of its values.
#
# Output seen (EXPECTED):
#   without doc_values, wildcard query: 200 apple
#   without doc_values, terms: 400
#   without doc_values, sort: 400
#   with doc_values, wildcard query: 200 apple
#   with doc_values, terms: 200
#   with doc_values, terms by a map: 200 apple pear
#   with doc_values, terms, query on both documents: 200 apple pear
#   with doc_values, sort: 200 apple pear
#   with doc_values, first of the sort: 200 apple
#   with doc_values, second of the sort: 500 exists in doc values but not in the terms index
#   with doc_values, descending sort: 200 pear apple
#   with doc_values, first of the descending sort: 500 exists in doc values but not in the terms index
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
  ask -f -X PUT "$url/$1" -d "{\"settings\":{\"number_of_shards\":1},\"mappings\":{\"properties\":{\"w\":$2}}}" >/dev/null
  ask -f -X PUT "$url/$1/_doc/1?refresh=true" -d '{"w":"apple"}' >/dev/null
  ask -f -X PUT "$url/$1/_doc/2?refresh=true" -d '{"w":"pear"}' >/dev/null
}
search() { # WORDS INDEX BODY: prints the status, and the values of the documents or buckets
  local status
  status=$(ask -o "$dir/answer" -w '%{http_code}' "$url/$2/_search" -d "$3")
  printf '%s: %s' "$1" "$status"
  { grep -oE '"(w|key)":"[^"]+"|exists in doc values but not in the terms index' "$dir/answer" || true; } |
    sed -E 's/.*:"(.*)"/\1/' | uniq | while read -r found; do printf ' %s' "$found"; done
  echo
}
create plain '{"type":"wildcard"}'
create columns '{"type":"wildcard","doc_values":true}'
{
  search 'without doc_values, wildcard query' plain '{"query":{"wildcard":{"w":"*ppl*"}}}'
  search 'without doc_values, terms' plain '{"size":0,"aggs":{"a":{"terms":{"field":"w"}}}}'
  search 'without doc_values, sort' plain '{"sort":["w"]}'
  search 'with doc_values, wildcard query' columns '{"query":{"wildcard":{"w":"*ppl*"}}}'
  search 'with doc_values, terms' columns '{"size":0,"aggs":{"a":{"terms":{"field":"w"}}}}'
  search 'with doc_values, terms by a map' columns '{"size":0,"aggs":{"a":{"terms":{"field":"w","execution_hint":"map"}}}}'
  search 'with doc_values, terms, query on both documents' columns \
    '{"size":0,"query":{"ids":{"values":["1","2"]}},"aggs":{"a":{"terms":{"field":"w"}}}}'
  search 'with doc_values, sort' columns '{"sort":["w"]}'
  search 'with doc_values, first of the sort' columns '{"size":1,"sort":["w"]}'
  search 'with doc_values, second of the sort' columns '{"size":1,"sort":["w"],"search_after":["apple"]}'
  search 'with doc_values, descending sort' columns '{"sort":[{"w":"desc"}]}'
  search 'with doc_values, first of the descending sort' columns '{"size":1,"sort":[{"w":"desc"}]}'
} | tee "$dir/output"
diff <(echo "$expected") "$dir/output" || {
  echo "the behaviour has changed" >&2
  exit 1
}
