package config

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"tutti/internal/base/setting"
	"tutti/internal/core"
)

// Patterns of keys, also part of the schema.
const (
	codePattern     = `^[A-Za-z0-9][A-Za-z0-9._-]{0,511}$`
	basePathPattern = `^/[A-Za-z0-9._~/-]*$`
	hostPattern     = `^(\*|[A-Za-z0-9._:\[\]-]+)$`
	urlPattern      = `^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\s]+`
	contactPattern  = `^([Hh][Tt][Tt][Pp][Ss]?://[^/?#\s]+|[Mm][Aa][Ii][Ll][Tt][Oo]:[^@\s]+@)`
	originPattern   = `^(\*|[A-Za-z][A-Za-z0-9+.-]*://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~-]+)(:[0-9]{1,5})?)$`
	brokerPattern   = `^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}$`
	topicPattern    = `^[A-Za-z0-9._-]{1,249}$`
)

// indexNamePattern matches valid index names of Elasticsearch without a leading dot, which is reserved.
const indexNamePattern = `^[^A-Z\\/*?"<>|\s,#:._+-][^A-Z\\/*?"<>|\s,#:]*$`

// keys returns every key of the file, bound to c.
func (c *Config) keys() []setting.Key {
	return []setting.Key{
		c.Server.key(),
		setting.Text("dataDir", &c.DataDir, "./tutti-data", "Directory of all data stored on this machine.").Require(),
		setting.Object("log", "Logging.",
			setting.Text("level", &c.Log.Level, "info", "Minimum level.").OneOf("debug", "info", "warn", "error").AnyCase(),
			setting.Text("format", &c.Log.Format, "text", "Format of a line.").OneOf("text", "json")),
		c.Queue.key(),
		setting.Object("deadLetters", "Records that could not be indexed.",
			setting.Number("maxBodies", &c.DeadLetters.MaxBodies, 10_000, 1, math.MaxInt32,
				"Dead letters per repository that store a document; others store its size and hash.")),
		c.Index.key(),
		c.Store.key(),
		setting.Objects("repositories", "Sources of records; by default the built-in one, {code: local, type: local, indexName: analyses}.",
			func(n int) { c.Repositories = make([]Repository, n) }, c.repositoryKeys),
		c.Catalogues.key(),
		c.Schemas.key(),
		c.Ingest.key(),
		c.Auth.key(),
		setting.Object("mcp", "Endpoint of the Model Context Protocol.",
			setting.Number("requestsPerMinute", &c.MCP.RequestsPerMinute, 300, 0, 1_000_000,
				"Messages that one token, or one address without a token, may send in a minute; further ones get 429. 0 for no limit.")),
		c.Service.key(),
		c.Tracing.key(),
		setting.Objects("alerts", "Receivers of messages about failed jobs, paused repositories and new dead letters.",
			func(n int) { c.Alerts = append([]Alert(nil), make([]Alert, n)...) }, c.alertKeys),
	}
}

func (s *Service) key() setting.Key {
	return setting.Object("service", "What GET /service-info says of this server, by GA4GH's specification of it.",
		setting.Text("id", &s.ID, "", "Name of the server in reverse domain order, such as org.example.tutti; empty for that of the host at which it is reached."),
		setting.Text("name", &s.Name, "tutti", "Name for people.").Require(),
		setting.Text("description", &s.Description, "", "What this server has, for people."),
		setting.Text("environment", &s.Environment, "", "Such as prod, test or dev."),
		setting.Address("contactUrl", &s.ContactURL, "Where to get help: a mailto or web URL.").
			Matching(contactPattern, "an absolute http, https or mailto URL"),
		setting.Object("organization", "Who runs the server.",
			setting.Text("name", &s.Organization.Name, "", "Name of the organization; empty for the host at which the server is reached."),
			setting.Address("url", &s.Organization.URL, "Website of the organization; empty for the URL of the server.").
				Matching(urlPattern, "an absolute http or https URL")))
}

func (s *Server) key() setting.Key {
	return setting.Object("server", "HTTP server.",
		setting.Text("listen", &s.Listen, "127.0.0.1:8080", "TCP address, host:port.").Require(),
		setting.List("hosts", &s.Hosts, nil, "With auth.mode none: names that the Host header may contain in addition to loopback names; * for any.").
			Matching(hostPattern, "a host name without scheme or path, or *"),
		setting.Text("basePath", &s.BasePath, "", "Prefix of every route, for a reverse proxy.").
			Matching(basePathPattern, "a plain path that starts with /"),
		setting.Text("publicUrl", &s.PublicURL, "", "URL at which users reach this server, with basePath, for links in alerts and the metadata of /mcp; empty for links that are paths.").
			Matching(urlPattern, "an absolute http or https URL"),
		setting.Size("maxBodyBytes", &s.MaxBodyBytes, 10<<20, 1, "Largest request body in bytes."),
		setting.Size("maxBytesInFlight", &s.MaxBytesInFlight, 256<<20, 1<<20,
			"Memory for large bodies in bytes, a fifth each for requests being received, submissions being processed, fetched records, documents being written and documents being read from the embedded index, with the responses to GraphQL that have them; further ones wait."),
		setting.Object("tls", "Certificate for HTTPS, reloaded when its files change; empty for HTTP.",
			setting.Text("certFile", &s.TLS.CertFile, "", "PEM file of the server's certificate, followed by the intermediate certificates."),
			setting.Text("keyFile", &s.TLS.KeyFile, "", "PEM file of the certificate's private key, without a password.")),
		setting.Number("maxConnections", &s.MaxConnections, 0, 0, math.MaxInt32,
			"Maximum number of open connections; a few more are served for /ping, /ready and /metrics only. 0 for half of the process's limit of open files, at most 8192."),
		setting.Number("maxConnectionsPerAddress", &s.MaxConnectionsPerAddress, 0, 0, math.MaxInt32,
			"Maximum number of connections of one IPv4 address or IPv6 /64 network; 0 for half of maxConnections."),
		setting.List("trustedProxies", &s.TrustedProxies, nil,
			"Addresses and CIDR networks of reverse proxies: maxConnectionsPerAddress does not apply to them, and their X-Forwarded-For identifies clients."),
		setting.Object("cors", "Origins that a browser allows to read responses.",
			setting.List("origins", &s.CORS.Origins, nil, "Origins, scheme://host[:port] each, or * for any; empty turns CORS off.").
				Matching(originPattern, "an origin, scheme://host[:port] without a path, or *")),
		setting.Text("profiling", &s.Profiling, "",
			"TCP address for profiles of the process (pprof), without tokens, such as :6060, which is on 127.0.0.1 unless a host is named; empty for none."),
		setting.Duration("startTimeout", &s.StartTimeout, time.Minute, "How long a start waits for an external queue, and then for PostgreSQL."),
		setting.Duration("shutdownDelay", &s.ShutdownDelay, 0,
			"How long a stop goes on serving while GET /ready returns 503, so that a balancer sends no more requests here.").OrZero(1),
		setting.Duration("shutdownTimeout", &s.ShutdownTimeout, 10*time.Second, "How long a stop then waits for requests in flight."))
}

func (q *Queue) key() setting.Key {
	return setting.Object("queue", "Queue of index requests.", slices.Concat([]setting.Key{
		setting.Address("url", &q.URL, "NATS servers, comma-separated; empty for the embedded server."),
		setting.Address("monitoringUrl", &q.MonitoringURL,
			"HTTP monitoring addresses of the servers, comma-separated, or a NATS URL with user and password of the system account, which only tutti check reads; empty for none."),
		setting.Text("credentialsFile", &q.CredentialsFile, "", "NATS credentials file; it is read again for each connection."),
		setting.Text("nkeyFile", &q.NKeyFile, "", "File with the seed of an nkey."),
		setting.Text("username", &q.Username, "", "User, with a password."),
		setting.SecretText("password", &q.Password, "Password of the user; its file is read again for each connection.").KeepFile(&q.PasswordFile),
	}, q.TLS.keys(), []setting.Key{
		setting.Number("replicas", &q.Replicas, 0, 0, 5,
			"Number of servers of a NATS cluster that store each message; 0 for 3 on a cluster and 1 otherwise, and never fewer than do."),
		setting.Number("maxPending", &q.MaxPending, 200_000, 1, math.MaxInt32, "Maximum number of waiting requests."),
	})...)
}

func (i *Index) key() setting.Key {
	return setting.Object("index", "Search index.", slices.Concat([]setting.Key{
		setting.Address("url", &i.URL, "Nodes of an Elasticsearch or OpenSearch, comma-separated; empty for the embedded index."),
		setting.Text("username", &i.Username, "", "User for basic authentication."),
		setting.SecretText("password", &i.Password, "Password for basic authentication."),
		setting.SecretText("apiKey", &i.APIKey, "API key, base64-encoded as returned by Elasticsearch."),
		setting.Object("aws", "Signing of requests to an OpenSearch of AWS, with the standard chain of credentials.",
			setting.Text("region", &i.AWS.Region, "", "Region, such as eu-west-1; empty for no signing."),
			setting.Text("service", &i.AWS.Service, "es", "es for OpenSearch Service, aoss for OpenSearch Serverless.").OneOf("es", "aoss")),
	}, i.TLS.keys(), []setting.Key{
		setting.Number("shards", &i.Shards, 1, 1, 1024, "Primary shards of a new index."),
		setting.Number("replicas", &i.Replicas, 1, 0, 100, "Replicas of each shard of a new index."),
		setting.Number("batchBytes", &i.BatchBytes, 2<<20, 1<<10, 100<<20, "Size of a bulk request in bytes."),
		setting.Number("maxInFlight", &i.MaxInFlight, 4, 1, 64,
			"Maximum number of bulk requests in flight, shared by the indexes; an index without one may always send one."),
		setting.Text("priority", &i.Priority, PrioritySearches,
			"searches slows runs down while they make searches of this process slower; indexing never does.").OneOf(PrioritySearches, PriorityIndexing),
		setting.Number("maxRecordBytes", &i.MaxRecordBytes, core.DefaultMaxRecordBytes, 1<<10, 100<<20,
			"Maximum size of a record in bytes; a larger one becomes a dead letter."),
		setting.Object("limits", "Limits of a new index and of its documents; settings in a mapping file win. A record over them becomes a dead letter.",
			setting.Number("nestedObjects", &i.Limits.NestedObjects, 100_000, 1, math.MaxInt32,
				"Objects in lists of objects of one document, at any depth (index.mapping.nested_objects.limit)."),
			setting.Number("nestedFields", &i.Limits.NestedFields, 200, 1, 100_000, "Fields that are lists of objects (index.mapping.nested_fields.limit)."),
			setting.Number("fields", &i.Limits.Fields, 5000, 100, 1_000_000, "All fields (index.mapping.total_fields.limit).")),
	})...)
}

func (i *Ingest) key() setting.Key {
	return setting.Object("ingest", "Sources of requests for all repositories.",
		setting.Object("kafka", "Topic of index requests in the format of Maestro's clients.", slices.Concat(i.Kafka.keys(), []setting.Key{
			setting.Text("requestTopic", &i.Kafka.RequestTopic, "maestro_index_requests", "Name of the topic.").Require().
				Matching(topicPattern, "a topic's name: letters, digits, dots, underscores and hyphens, at most 249"),
			group(&i.Kafka.Group),
		})...))
}

func group(target *string) setting.Key {
	return setting.Text("group", target, "tutti", "Consumer group, which stores the offsets.").Require()
}

// schemaID is the id of the schema; nothing is fetched from it.
const schemaID = "urn:tutti:config"

// Schema returns the JSON Schema (draft 2020-12) of the file. It validates single keys; contradictions between keys are reported by
// Load.
func Schema() []byte {
	var c Config
	root := setting.SchemaOf(c.keys())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = schemaID
	root["title"] = "tutti configuration"
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		// Maps of strings, numbers and booleans always marshal.
		return nil
	}
	return append(b, '\n')
}

// YAML returns the effective configuration as a YAML file with all defaults. Secrets are masked.
func (c Config) YAML() ([]byte, error) { return c.yaml(nil) }

// Format writes the effective configuration as YAML for every verb. Secrets are masked.
func (c Config) Format(s fmt.State, _ rune) { printMasked(s, c.keys()) }

// MarshalText returns the effective configuration as YAML, for JSON and log/slog. Secrets are masked.
func (c Config) MarshalText() ([]byte, error) { return c.YAML() }

func printMasked(w io.Writer, keys []setting.Key) {
	text, err := setting.YamlOf(keys, nil)
	if err != nil {
		text = []byte(err.Error())
	}
	_, _ = w.Write(text) // a fmt.State takes all
}

func (c Config) yaml(given *setting.Node) ([]byte, error) {
	text, err := setting.YamlOf(c.keys(), given)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "writing the configuration", err)
	}
	return text, nil
}

// Sample returns a file with every key at its default, each with a comment. To load it is the same as to load no file.
func Sample() []byte {
	var c Config
	root := setting.NewObject("")
	addLocal(root)
	setting.Decode(root, c.keys(), &setting.ErrorList{})
	return setting.Commented("The configuration of tutti: every key with its default. Keys that keep it can be removed.\n"+
		"The variable at the end of a comment sets the key too, and takes precedence over this file.", c.keys())
}
