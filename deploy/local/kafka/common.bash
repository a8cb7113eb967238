# Sourced by start and stop: where everything is. Needs nothing but bash.
#
# Services live below TUTTI_SERVICES_DIR. The default is ~/.cache/tutti-services, and /var/cache/tutti-services for root,
# as for the other services.

scala=2.13

if [ "$(id -u)" -eq 0 ]; then
  default_dir=/var/cache/tutti-services
else
  default_dir=$HOME/.cache/tutti-services
fi
base=${TUTTI_SERVICES_DIR:-$default_dir}/kafka

clean=false
secure=false
for argument in "$@"; do
  case $argument in
    --clean) clean=true ;;
    --secure) secure=true ;;
    *)
      echo "unknown argument $argument; known: --clean --secure" >&2
      exit 2
      ;;
  esac
done

if $secure; then
  version=${TUTTI_KAFKA_SECURE_VERSION:-4.4.0}
  port=${TUTTI_KAFKA_SECURE_PORT:-19192}
  controller_port=$((port + 5))
  node=$base/secure-$port
else
  version=${TUTTI_KAFKA_VERSION:-3.9.1}
  port=${TUTTI_KAFKA_PORT:-19092}
  controller_port=${TUTTI_KAFKA_CONTROLLER_PORT:-$((port + 1))}
  node=$base/node-$port
fi
home=$base/kafka-$version
pid_file=$node/pid

say() { echo "kafka: $*" >&2; }

# running reports whether the recorded process is alive and is this server's, not another process with a reused id.
running() {
  local pid
  pid=$(cat "$pid_file" 2>/dev/null) && [ -n "$pid" ] && grep -qF "$node" "/proc/$pid/cmdline" 2>/dev/null
}
