# Sourced by start and stop: where everything is. Needs nothing but bash.
#
# Services live below TUTTI_SERVICES_DIR. The default is ~/.cache/tutti-services, and /var/cache/tutti-services for root,
# as for the other services.

if [ "$(id -u)" -eq 0 ]; then
  default_dir=/var/cache/tutti-services
else
  default_dir=$HOME/.cache/tutti-services
fi
base=${TUTTI_SERVICES_DIR:-$default_dir}/nats
port=${TUTTI_NATS_PORT:-19500}

way=${1:-users}
case $way in
  users | --build) ;;
  certificates) port=$((port + 40)) ;;
  operator) port=$((port + 80)) ;;
  *)
    echo "unknown way $way; known: users certificates operator" >&2
    exit 2
    ;;
esac
node=$base/$way-$port
servers=(node0 node1 node2 single)

say() { echo "nats: $*" >&2; }

# running NAME reports whether the recorded process of a server is alive and is this server's, not another process with a reused id.
running() {
  pid=$(cat "$node/$1.pid" 2>/dev/null) && [ -n "$pid" ] && grep -qF "$node/$1.conf" "/proc/$pid/cmdline" 2>/dev/null
}
