# Sourced by start and stop: where everything is. Needs nothing but bash.
#
# Services live below TUTTI_SERVICES_DIR. The default is ~/.cache/tutti-services, and /var/cache/tutti-services for
# root: PostgreSQL refuses to run as root, and the user made for it cannot look into root's home.

user=${TUTTI_POSTGRES_USER:-tutti-services}

if [ "$(id -u)" -eq 0 ]; then
  default_dir=/var/cache/tutti-services
else
  default_dir=$HOME/.cache/tutti-services
fi
base=${TUTTI_SERVICES_DIR:-$default_dir}/postgres

clean=false
standby=false
for argument in "$@"; do
  case $argument in
    --clean) clean=true ;;
    --standby) standby=true ;;
    *)
      echo "unknown argument $argument; known: --clean, --standby" >&2
      exit 2
      ;;
  esac
done

port=${TUTTI_POSTGRES_PORT:-19432}
version=${TUTTI_POSTGRES_VERSION:-}
primary=$base/node-$port
primary_port=$port
if $standby; then port=${TUTTI_POSTGRES_STANDBY_PORT:-$((port + 1))}; fi
node=$base/node-$port
data=$node/data
pid_file=$data/postmaster.pid # the server's own record; its first line is the id

say() { echo "postgres: $*" >&2; }

# running reports whether the recorded process is alive and is this server's, not another process with a reused id.
running() {
  pid=$(head -n 1 "$pid_file" 2>/dev/null) && [ -n "$pid" ] && grep -qzxF "$data" "/proc/$pid/cmdline" 2>/dev/null
}
