package config

import (
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"tutti/internal/base/hostname"
	"tutti/internal/base/setting"
)

// Config is the validated configuration. Relative paths are relative to the working directory.
type Config struct {
	Server Server
	// DataDir is the directory of all data stored on this machine.
	DataDir      string
	Log          Log
	Queue        Queue
	DeadLetters  DeadLetters
	Index        Index
	Store        Store
	Repositories []Repository
	Catalogues   Catalogues
	Schemas      Schemas
	Ingest       Ingest
	Auth         Auth
	MCP          MCP
	Service      Service
	Tracing      Tracing
	Alerts       []Alert
	// Warnings are problems that do not prevent the start, one sentence each, without secrets.
	Warnings []string
}

// Service describes the server in GET /service-info.
type Service struct {
	ID, Name, Description, Environment string
	ContactURL                         setting.URL
	Organization                       struct {
		Name string
		URL  setting.URL
	}
}

// MCP configures the endpoint of the Model Context Protocol.
type MCP struct {
	// RequestsPerMinute bounds the messages of one caller; 0 for no limit.
	RequestsPerMinute int
}

// Server configures the HTTP server.
type Server struct {
	// Listen is a TCP address, host:port.
	Listen string
	// Hosts are the names other than loopback names that the Host header may contain if there is no authentication; "*" for any.
	Hosts []string
	// BasePath is the prefix of every route; empty for none.
	BasePath string
	// PublicURL is the URL of this server with BasePath, for links in alerts and the metadata of /mcp; empty for links that are paths.
	PublicURL string
	// MaxBodyBytes bounds a request body.
	MaxBodyBytes int64
	// MaxBytesInFlight bounds the memory of large bodies, with a fifth for each kind: requests being received, submissions being
	// processed, fetched records, documents being written, and documents being read from the embedded index with the responses that have
	// them.
	MaxBytesInFlight int64
	// MaxConnections bounds the open connections, MaxConnectionsPerAddress those of one address; 0 means a number that depends on
	// the limit of open files, or half of MaxConnections for one address.
	MaxConnections, MaxConnectionsPerAddress int
	// TrustedProxies are addresses and CIDR networks of reverse proxies, to which MaxConnectionsPerAddress does not apply, and whose
	// X-Forwarded-For identifies clients.
	TrustedProxies []string
	TLS            TLS
	CORS           CORS
	// Profiling is a TCP address for profiles (net/http/pprof), on loopback if it names no host; empty for none.
	Profiling string
	// StartTimeout is how long a start waits for an external queue, and then for PostgreSQL.
	StartTimeout time.Duration
	// ShutdownDelay is how long a stop serves requests before the rest, while GET /ready returns 503: how long balancers take to send
	// requests elsewhere.
	ShutdownDelay time.Duration
	// ShutdownTimeout is how long a stop waits for requests in flight.
	ShutdownTimeout time.Duration
}

// TLS names the files for HTTPS; both are empty for HTTP.
type TLS struct {
	// CertFile is a PEM file of the server's certificate and the intermediate certificates, KeyFile one of its private key.
	CertFile, KeyFile string
}

// Enabled reports whether HTTPS is configured.
func (t TLS) Enabled() bool { return t.CertFile != "" }

// CORS configures which origins a browser allows to read responses.
type CORS struct {
	// Origins are scheme://host[:port] each, or "*" for any; empty turns CORS off.
	Origins []string
}

// Loopback reports whether Listen can be reached only from this machine.
func (s Server) Loopback() bool {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return false
	}
	return hostname.Loopback(host)
}

// Proxies returns TrustedProxies, without invalid entries.
func (s Server) Proxies() []netip.Prefix {
	var proxies []netip.Prefix
	for _, text := range s.TrustedProxies {
		if proxy, err := parseProxy(text); err == nil {
			proxies = append(proxies, proxy)
		}
	}
	return proxies
}

// parseProxy parses an address or a CIDR network. An IPv4-mapped IPv6 address is an IPv4 address.
func parseProxy(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		return netip.ParsePrefix(text)
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	address = address.Unmap().WithZone("")
	return address.Prefix(address.BitLen())
}

// Log configures logging.
type Log struct {
	// Level is debug, info, warn or error.
	Level string
	// Format is text or json.
	Format string
}

// SlogLevel converts Level for log/slog.
func (l Log) SlogLevel() (level slog.Level) {
	_ = level.UnmarshalText([]byte(l.Level)) // an unknown level is info
	return level
}

// Queue configures the queue.
type Queue struct {
	// URL lists NATS servers, comma-separated; empty for the embedded server.
	URL setting.URL
	// MonitoringURL lists where URL's servers report to their operator, comma-separated; empty for none.
	MonitoringURL setting.URL
	// CredentialsFile is a NATS credentials file for URL; empty for none.
	CredentialsFile string
	// NKeyFile is a file with the seed of an nkey; empty for none.
	NKeyFile string
	// Username and Password are credentials of a user. PasswordFile is the file of Password, empty for none.
	Username     string
	Password     setting.Secret
	PasswordFile string
	// TLS are the files of TLS connections.
	TLS ClientTLS
	// Replicas is the number of cluster servers that store each message; 0 for 3 on a cluster and 1 otherwise.
	Replicas int
	// MaxPending bounds the waiting Requests.
	MaxPending int
}

// DeadLetters bounds the stored dead letters.
type DeadLetters struct {
	// MaxBodies is the number of dead letters per repository that store a document; others store its size and hash.
	MaxBodies int
}

// Index configures the index.
type Index struct {
	// URL lists the nodes of an Elasticsearch or OpenSearch, comma-separated; empty for the embedded index.
	URL      setting.URL
	Username string
	Password setting.Secret
	APIKey   setting.Secret
	// AWS signs requests with AWS Signature Version 4, if its region is set.
	AWS AWS
	// TLS are the files of connections with https.
	TLS ClientTLS
	// Shards and Replicas apply to new physical indexes.
	Shards   int
	Replicas int
	// BatchBytes is the size of a bulk request.
	BatchBytes int
	// MaxInFlight bounds the bulk requests in flight, shared by the indexes; an index without one may always send one.
	MaxInFlight int
	// Priority is PrioritySearches or PriorityIndexing.
	Priority string
	// MaxRecordBytes bounds the records that are indexed.
	MaxRecordBytes int
	// Limits bound the fields of a new index and its documents.
	Limits IndexLimits
}

// Values of Index.Priority.
const (
	PrioritySearches = "searches"
	PriorityIndexing = "indexing"
)

// IndexLimits are the limits of an index that tutti makes.
type IndexLimits struct {
	// NestedObjects bounds the objects in lists of one document, NestedFields the fields that are lists of objects, Fields all fields.
	NestedObjects, NestedFields, Fields int
}

// AWS configures the signing of requests to an OpenSearch of AWS.
type AWS struct {
	// Region is empty where requests are not signed.
	Region string
	// Service is es or aoss.
	Service string
}

// URLs returns the nodes of URL, none for the embedded index.
func (i Index) URLs() []string { return setting.SplitList(i.URL.Reveal()) }

// Ingest configures sources of requests for all repositories.
type Ingest struct {
	Kafka RequestTopic
}

// RequestTopic is a Kafka topic of requests to index, in the format of Maestro's clients.
type RequestTopic struct {
	KafkaConnection
	RequestTopic string
	// Group is the consumer group that stores the offsets.
	Group string
}
