# Sourced by start and stop: where everything is. Needs nothing but bash.
#
# Services live below TUTTI_SERVICES_DIR. The default is ~/.cache/tutti-services, and /var/cache/tutti-services for
# root: Elasticsearch refuses to run as root, and the user made for it cannot look into root's home.

version=${TUTTI_ES_VERSION:-8.19.21}
user=${TUTTI_ES_USER:-tutti-services}

if [ "$(id -u)" -eq 0 ]; then
  default_dir=/var/cache/tutti-services
else
  default_dir=$HOME/.cache/tutti-services
fi
base=${TUTTI_SERVICES_DIR:-$default_dir}/elasticsearch
home=$base/elasticsearch-$version

secure=false
clean=false
for argument in "$@"; do
  case $argument in
    --secure) secure=true ;;
    --clean) clean=true ;;
    *)
      echo "unknown argument $argument; known: --secure --clean" >&2
      exit 2
      ;;
  esac
done

if $secure; then
  port=${TUTTI_ES_SECURE_PORT:-19201}
  node=$base/secure-$port
else
  port=${TUTTI_ES_PORT:-19200}
  node=$base/plain-$port
fi
pid_file=$node/pid

say() { echo "elasticsearch: $*" >&2; }

# running reports whether the recorded process is alive and is this server's, not another process with a reused id.
running() {
  local pid
  pid=$(cat "$pid_file" 2>/dev/null) && [ -n "$pid" ] && tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF "$node"
}
