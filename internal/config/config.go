package config

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"tutti/internal/core"
)

// Config is the whole configuration, validated. Relative paths in it are relative to the working folder.
type Config struct {
	Server Server
	// DataDir is the folder of everything that is kept on this machine.
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
	// Warnings are what the start is not refused for but an operator should know, one sentence each, without secrets.
	Warnings []string
}

// Server says where and how requests are answered.
type Server struct {
	// Listen is a TCP address, host:port.
	Listen string
	// Hosts are names beside loopback ones that the Host header may carry while nobody has to show a token; "*" for any.
	Hosts []string
	// BasePath prefixes every route; empty for none.
	BasePath string
	// MaxBodyBytes is the largest request body.
	MaxBodyBytes int64
	// MaxBytesInFlight bounds the memory of large bodies, a quarter each: of requests that are received, of submissions that are
	// worked on, of records that are fetched, and of documents that are written.
	MaxBytesInFlight int64
	// MaxConnections is how many connections are served at once, MaxConnectionsPerAddress how many of one address; 0 for a number
	// that the limit of open files leaves room for, and for half of MaxConnections.
	MaxConnections, MaxConnectionsPerAddress int
	// TrustedProxies are addresses and CIDR networks of reverse proxies, which MaxConnectionsPerAddress does not bound, and whose
	// X-Forwarded-For tells callers apart.
	TrustedProxies []string
	TLS            TLS
	CORS           CORS
	// StartTimeout is how long a start waits for the queue.
	StartTimeout time.Duration
	// ShutdownTimeout is how long a stop waits for what is in hand.
	ShutdownTimeout time.Duration
}

// TLS names the files that requests over HTTPS are answered with; both are empty for HTTP.
type TLS struct {
	// CertFile is a PEM file of the server's certificate and those between it and its authority, KeyFile one of its private key.
	CertFile, KeyFile string
}

// Enabled reports whether requests are answered over HTTPS.
func (t TLS) Enabled() bool { return t.CertFile != "" }

// CORS says which pages of other origins a browser lets read answers.
type CORS struct {
	// Origins are scheme://host[:port] each, or "*" for any; none turns CORS off.
	Origins []string
}

// Loopback reports whether Listen can be reached from this machine alone.
func (s Server) Loopback() bool {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return false
	}
	return loopbackHost(host)
}

// Proxies returns TrustedProxies, without what is neither an address nor a network.
func (s Server) Proxies() []netip.Prefix {
	var proxies []netip.Prefix
	for _, text := range s.TrustedProxies {
		if proxy, err := parseProxy(text); err == nil {
			proxies = append(proxies, proxy)
		}
	}
	return proxies
}

// parseProxy reads an address or a CIDR network. An address of IPv4 inside IPv6 is one of IPv4.
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

// Log says what is logged and how.
type Log struct {
	// Level is debug, info, warn or error.
	Level string
	// Format is text or json.
	Format string
}

// SlogLevel returns Level for log/slog.
func (l Log) SlogLevel() slog.Level {
	switch l.Level {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

// Queue says where Requests are kept.
type Queue struct {
	// URL is that of a NATS server, several comma-separated; empty for the embedded one.
	URL string
	// CredentialsFile is a NATS credentials file for URL; empty for none.
	CredentialsFile string
	// Replicas is how many servers of a cluster hold each message.
	Replicas int
	// MaxPending is how many Requests may wait.
	MaxPending int
}

// DeadLetters bounds what is kept of records that were given up.
type DeadLetters struct {
	// MaxBodies is the number of dead letters of one repository's records that keep a document; others keep its size and hash.
	MaxBodies int
}

// Index says where documents are written.
type Index struct {
	// URL is that of an Elasticsearch node, several comma-separated; empty for the embedded index.
	URL      string
	Username string
	Password Secret
	APIKey   Secret
	// CAFile is a PEM file of certificate authorities to trust beside the system's; empty for none.
	CAFile string
	// Shards and Replicas are those of a new physical index.
	Shards   int
	Replicas int
	// BatchBytes is the size of a bulk request.
	BatchBytes int
	// MaxInFlight is how many bulk requests may be in flight, shared by the indexes; one that has none may always send one.
	MaxInFlight int
	// MaxRecordBytes is the largest record that is indexed.
	MaxRecordBytes int
}

// URLs returns the nodes of URL, none for the embedded index.
func (i Index) URLs() []string { return splitList(i.URL) }

// Repository is one source of records.
type Repository struct {
	Code string
	Type core.RepositoryType
	// URL is where the repository is; empty for the built-in one, of type local.
	URL string
	// IndexName is the alias that documents are written to.
	IndexName string
	// Name, Organization and Country go into a document's repositories block.
	Name         string
	Organization string
	Country      string
	// Token is a bearer token; Username and Password are for basic authentication.
	Token    Secret
	Username string
	Password Secret
	// Timeout bounds one call and each wait for more of its answer.
	Timeout time.Duration
	// PageSize is how many records one call lists, at least 2: pages overlap by one.
	PageSize int
	// Concurrency is how many calls may be under way.
	Concurrency int
	// MappingFile is a JSON file with the index's mapping; empty lets tutti make one. Mapping is what it holds.
	MappingFile string
	Mapping     json.RawMessage
	Song        Song
	Lyric       Lyric
	// Notifications are the ways in which the repository tells of its changes.
	Notifications Notifications
	Reconcile     Reconcile
}

// Song is what only repositories of types song and local have.
type Song struct {
	// States are the analysis states that belong into the index.
	States []string
}

// Lyric is what only a repository of type lyric has.
type Lyric struct {
	// CategoryID is the category whose records belong into the index.
	CategoryID string
	// ValidOnly leaves out records that do not fit their dictionary.
	ValidOnly bool
	// Entity is the one entity whose records are taken; empty takes all.
	Entity string
}

// Notifications are the ways in which a repository tells of its changes.
type Notifications struct {
	Kafka   KafkaTopic
	Webhook Webhook
}

// KafkaTopic is a topic on which a repository tells of its changes.
type KafkaTopic struct {
	// Brokers are host:port each; none turns the topic off.
	Brokers []string
	// Topic is never empty when there are Brokers.
	Topic string
	// Group is the consumer group that remembers how far the topic was read.
	Group string
}

// Webhook is how a repository's posts of its changes are told from others'.
type Webhook struct {
	// Secret is the key of the signature that each post must carry; empty asks for none.
	Secret Secret
}

// Reconcile is the regular comparison of the whole repository with its index.
type Reconcile struct {
	// Every is the time from one to the next; zero turns it off.
	Every time.Duration
}

// Ingest says where requests come from that belong to no single repository.
type Ingest struct {
	Kafka RequestTopic
}

// RequestTopic is a Kafka topic of requests to index, as Maestro's clients write it.
type RequestTopic struct {
	// Brokers are host:port each; none turns the topic off.
	Brokers      []string
	RequestTopic string
	// Group is the consumer group that remembers how far the topic was read.
	Group string
}

// Core returns the repository as the other packages know it.
func (r Repository) Core() core.Repository {
	return core.Repository{
		Code: r.Code, Type: r.Type, URL: r.URL, IndexName: r.IndexName,
		Name: r.Name, Organization: r.Organization, Country: r.Country,
	}
}
