#!/usr/bin/env bash
# Elasticsearch 9.5.3 (the distribution that deploy/local/engine starts). Needs bash, curl, Maven and a JDK of 21 or later.
#
# What happens: since 9.2 documents are returned without their vectors unless the request or the index asks for them. What is less known: once the
# mapping has a `dense_vector`, the rest of those documents is written anew as well. Of a document with a vector, numbers change their notation
# and lose digits, though the same number in an index without a vector field, or in one with `index.mapping.exclude_source_vectors: false`, comes
# back as it was sent. A client that compares documents with what it wrote, or copies them to another index, has to set exclude_source_vectors to
# false when it makes the index: asking for the vectors in the request brings back the vectors, not the digits.
#
# Output seen (EXPECTED), what is read of {"n":0.1234567890123456789,"o":{"v":[1,2.50],"l":[]}}:
#   no vector field: {"n":0.1234567890123456789,"o":{"v":[1,2.50],"l":[]}}
#   a vector field: {"n":0.12345678901234568,"o":{"l":[]}}
#   a vector field, vectors asked for: {"n":0.12345678901234568,"o":{"l":[],"v":[1.0,2.5]}}
#   a vector field that is kept: {"n":0.1234567890123456789,"o":{"v":[1,2.50],"l":[]}}
#
# Ends with an error if a line is another one.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
chmod 755 "$dir" # the engine runs as another user
export TUTTI_SERVICES_DIR=$dir TUTTI_ENGINE_PORT=19394 TUTTI_ES_HEAP=512m
trap '"$here/deploy/local/engine/stop" elasticsearch-9 >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
expected=$(sed -n '/^# Output seen/,/^#$/s/^#   //p' "$0")
"$here/deploy/local/engine/start" elasticsearch-9 >/dev/null 2>&1
url=http://127.0.0.1:$TUTTI_ENGINE_PORT
ask() { curl -sf -H 'Content-Type: application/json' "$@"; }
read_from() { # WORDS INDEX PARAMETERS
  printf '%s: ' "$1"
  ask "$url/$2/_doc/1$3" | sed 's/.*"_source"://; s/}$//'
  echo
}
vector='"mappings":{"properties":{"o":{"properties":{"v":{"type":"dense_vector","dims":2}}}}}'
ask -X PUT "$url/plain" -d '{}' >/dev/null
ask -X PUT "$url/vector" -d "{$vector}" >/dev/null
ask -X PUT "$url/kept" -d "{\"settings\":{\"index.mapping.exclude_source_vectors\":false},$vector}" >/dev/null
for index in plain vector kept; do
  ask -X PUT "$url/$index/_doc/1?refresh=true" -d '{"n":0.1234567890123456789,"o":{"v":[1,2.50],"l":[]}}' >/dev/null
done
{
  read_from 'no vector field' plain ''
  read_from 'a vector field' vector ''
  read_from 'a vector field, vectors asked for' vector '?_source_exclude_vectors=false'
  read_from 'a vector field that is kept' kept ''
} | tee "$dir/output"
diff <(echo "$expected") "$dir/output" || {
  echo "the behaviour has changed" >&2
  exit 1
}
