#!/usr/bin/env bash
# Elasticsearch 8.19.21 and OpenSearch 3.2.0 (the distributions that deploy/local/engine starts, with -p FILE). Needs bash, curl, Java 21 and Maven.
#
# What happens: after SIGTERM the file that -p names is removed while the process still runs: who waits for the file, as scripts of services do,
# starts the next node, or removes the folder of the data, while the first one still writes to it.
#
# Probable cause: the file is removed by a hook of the JVM's shutdown, which runs beside the one that closes the node.
#
# Output seen (EXPECTED):
#   elasticsearch-8: the process runs after its file is gone
#   opensearch-3: the process runs after its file is gone
#
# Ends with an error if a line is another one.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
chmod 755 "$dir" # the engine runs as another user
export TUTTI_SERVICES_DIR=$dir TUTTI_ES_HEAP=512m
trap 'for flavour in elasticsearch-8 opensearch-3; do "$here/deploy/local/engine/stop" "$flavour" >/dev/null 2>&1 || true; done; rm -rf "$dir"' EXIT
expected=$(sed -n '/^# Output seen/,/^#$/s/^#   //p' "$0")
for flavour in elasticsearch-8 opensearch-3; do
  export TUTTI_ENGINE_PORT=19293
  "$here/deploy/local/engine/start" "$flavour" >/dev/null 2>&1
  file=$(find "$dir" -name pid -size +0 | head -n 1)
  pid=$(cat "$file")
  kill -TERM "$pid"
  while [ -e "$file" ]; do sleep 0.01; done
  if kill -0 "$pid"; then
    echo "$flavour: the process runs after its file is gone"
  else
    echo "$flavour: the process has ended when its file is gone"
  fi
  while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
done | tee "$dir/output"
diff <(echo "$expected") "$dir/output" || {
  echo "the behaviour has changed" >&2
  exit 1
}
