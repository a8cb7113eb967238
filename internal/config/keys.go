package config

import (
	"math"
	"time"

	"tutti/internal/core"
)

// Patterns of keys, also part of the schema.
const (
	codePattern     = `^[A-Za-z0-9][A-Za-z0-9._-]{0,511}$`
	basePathPattern = `^/[A-Za-z0-9._~/-]*$`
	hostPattern     = `^(\*|[A-Za-z0-9._:\[\]-]+)$`
	urlPattern      = `^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\s]+`
	stateText       = `^[^\s,&=]+$`
	originPattern   = `^(\*|[A-Za-z][A-Za-z0-9+.-]*://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~-]+)(:[0-9]{1,5})?)$`
	brokerPattern   = `^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}$`
	topicPattern    = `^[A-Za-z0-9._-]{1,249}$`
	categoryPattern = `^[A-Za-z0-9][A-Za-z0-9._~-]{0,99}$`
)

// indexNamePattern matches valid index names of Elasticsearch without a leading dot, which is reserved.
const indexNamePattern = `^[^A-Z\\/*?"<>|\s,#:._+-][^A-Z\\/*?"<>|\s,#:]*$`

// Defaults used in several places.
const (
	defaultStates    = "PUBLISHED"
	defaultSongTopic = "song-analysis"
	// minReconcileInterval keeps runs from overlapping.
	minReconcileInterval = 10 * time.Second
)

// keys returns every key of the file, bound to c.
func (c *Config) keys() []key {
	return []key{
		c.Server.key(),
		text("dataDir", &c.DataDir, "./tutti-data", "Directory of all data stored on this machine.").require(),
		object("log", "Logging.",
			text("level", &c.Log.Level, "info", "Minimum level.").oneOf("debug", "info", "warn", "error").anyCase(),
			text("format", &c.Log.Format, "text", "Format of a line.").oneOf("text", "json")),
		c.Queue.key(),
		object("deadLetters", "Records that could not be indexed.",
			number("maxBodies", &c.DeadLetters.MaxBodies, 10_000, 1, math.MaxInt32,
				"Dead letters per repository that store a document; others store its size and hash.")),
		c.Index.key(),
		c.Store.key(),
		{
			name: "repositories", doc: "Sources of records; by default the built-in one, {code: local, type: local, indexName: analyses}.",
			elements: func(n int) [][]key {
				c.Repositories = make([]Repository, n)
				return c.repositoryKeys()
			},
			present: c.repositoryKeys,
		},
		c.Catalogues.key(),
		c.Schemas.key(),
		c.Ingest.key(),
		c.Auth.key(),
	}
}

func (c *Config) repositoryKeys() [][]key {
	each := make([][]key, len(c.Repositories))
	for i := range c.Repositories {
		each[i] = c.Repositories[i].keys()
	}
	return each
}

func (s *Server) key() key {
	return object("server", "HTTP server.",
		text("listen", &s.Listen, "127.0.0.1:8080", "TCP address, host:port.").require(),
		list("hosts", &s.Hosts, nil, "Names that the Host header may contain in addition to loopback names with auth.mode none; * for any.").
			matching(hostPattern, "a host name without scheme or path, or *"),
		text("basePath", &s.BasePath, "", "Prefix of every route, for a reverse proxy.").
			matching(basePathPattern, "a plain path that starts with /"),
		size("maxBodyBytes", &s.MaxBodyBytes, 10<<20, 1, "Largest request body in bytes."),
		size("maxBytesInFlight", &s.MaxBytesInFlight, 256<<20, 1<<20,
			"Memory for large bodies in bytes, a quarter each for requests being received, submissions being processed, fetched records and documents being written; further ones wait."),
		object("tls", "Certificate for HTTPS, reloaded when its files change; empty for HTTP.",
			text("certFile", &s.TLS.CertFile, "", "PEM file of the server's certificate, followed by the intermediate certificates."),
			text("keyFile", &s.TLS.KeyFile, "", "PEM file of the certificate's private key, without a password.")),
		number("maxConnections", &s.MaxConnections, 0, 0, math.MaxInt32,
			"Maximum number of open connections; a few more are served for /ping, /ready and /metrics only. 0 for half of the process's limit of open files, at most 8192."),
		number("maxConnectionsPerAddress", &s.MaxConnectionsPerAddress, 0, 0, math.MaxInt32,
			"Maximum number of connections of one IPv4 address or IPv6 /64 network; 0 for half of maxConnections."),
		list("trustedProxies", &s.TrustedProxies, nil,
			"Addresses and CIDR networks of reverse proxies: maxConnectionsPerAddress does not apply to them, and their X-Forwarded-For identifies clients."),
		object("cors", "Origins that a browser allows to read responses.",
			list("origins", &s.CORS.Origins, nil, "Origins, scheme://host[:port] each, or * for any; empty turns CORS off.").
				matching(originPattern, "an origin, scheme://host[:port] without a path, or *")),
		duration("startTimeout", &s.StartTimeout, time.Minute, "How long a start waits for the queue."),
		duration("shutdownTimeout", &s.ShutdownTimeout, 10*time.Second, "How long a stop waits for requests in flight."))
}

func (q *Queue) key() key {
	url := text("url", &q.URL, "", "NATS servers, comma-separated; empty for the embedded server.")
	url.credentials = true
	return object("queue", "Queue of index requests.", url,
		text("credentialsFile", &q.CredentialsFile, "", "NATS credentials file."),
		number("replicas", &q.Replicas, 1, 1, 5, "Number of cluster servers that store each message."),
		number("maxPending", &q.MaxPending, 200_000, 1, math.MaxInt32, "Maximum number of waiting requests."))
}

func (i *Index) key() key {
	return object("index", "Search index.",
		text("url", &i.URL, "", "Elasticsearch nodes, comma-separated; empty for the embedded index."),
		text("username", &i.Username, "", "User for basic authentication."),
		secret("password", &i.Password, "Password for basic authentication."),
		secret("apiKey", &i.APIKey, "API key, base64-encoded as returned by Elasticsearch."),
		text("caFile", &i.CAFile, "", "PEM file of certificate authorities to trust in addition to the system's."),
		number("shards", &i.Shards, 1, 1, 1024, "Primary shards of a new index."),
		number("replicas", &i.Replicas, 1, 0, 100, "Replicas of each shard of a new index."),
		number("batchBytes", &i.BatchBytes, 2<<20, 1<<10, 100<<20, "Size of a bulk request in bytes."),
		number("maxInFlight", &i.MaxInFlight, 4, 1, 64,
			"Maximum number of bulk requests in flight, shared by the indexes; an index without one may always send one."),
		number("maxRecordBytes", &i.MaxRecordBytes, core.DefaultMaxRecordBytes, 1<<10, 100<<20,
			"Maximum size of a record in bytes; a larger one becomes a dead letter."))
}

func (r *Repository) keys() []key {
	return []key{
		text("code", &r.Code, "", "Id of the repository in paths and documents.").require().
			matching(codePattern, "letters, digits, dots, underscores and hyphens, the first a letter or digit, at most 512"),
		text("type", (*string)(&r.Type), "", "Protocol of the repository; local is the built-in one, at most once.").require().
			oneOf(repositoryTypes()...),
		text("url", &r.URL, "", "Base URL of the repository; not for type local.").
			requireUnless("type", string(core.TypeLocal), func() bool { return r.Type == core.TypeLocal }).
			matching(urlPattern, "an absolute http or https URL"),
		text("indexName", &r.IndexName, "", "Alias that documents are written to.").require().
			matching(indexNamePattern, "an index name: lower case, none of \\ / * ? \" < > | , # : or space, not starting with . - _ or +"),
		text("name", &r.Name, "", "Name as shown in documents."),
		text("organization", &r.Organization, "", "Who runs the repository, as shown in documents."),
		text("country", &r.Country, "", "Where the repository is, as shown in documents."),
		secret("token", &r.Token, "Bearer token for the repository."),
		text("username", &r.Username, "", "User for basic authentication."),
		secret("password", &r.Password, "Password for basic authentication."),
		duration("timeout", &r.Timeout, 30*time.Second, "Timeout of a call until its headers, and of each wait for more of its body."),
		number("pageSize", &r.PageSize, 500, 2, 10_000,
			"Records per page; at least 2, since each page repeats the last record of the previous one. Reduced while a page takes more than 10 s."),
		number("concurrency", &r.Concurrency, 4, 1, 64, "Maximum number of calls in flight."),
		text("mappingFile", &r.MappingFile, "", "JSON file with the index's mapping; empty for a generated one."),
		object("song", "For types song and local.",
			list("states", &r.Song.States, []string{defaultStates}, "Indexed analysis states.").
				matching(stateText, "an analysis state such as PUBLISHED").require()),
		object("lyric", "For type lyric.",
			text("categoryId", &r.Lyric.CategoryID, "", "Indexed category.").orNumber().
				matching(categoryPattern, "a category's id, such as 1"),
			flag("validOnly", &r.Lyric.ValidOnly, true, "Excludes records that violate their dictionary."),
			text("entity", &r.Lyric.Entity, "", "The only indexed entity, such as the category's central one; empty for all.")),
		object("notifications", "Change notifications of the repository.",
			r.Notifications.Kafka.key(),
			object("webhook", "Notifications with POST /notifications/ and the repository's code.",
				secret("secret", &r.Notifications.Webhook.Secret, "Key of the required signature; empty for none."))),
		object("reconcile", "Periodic comparison of the repository with its index.",
			duration("every", &r.Reconcile.Every, 0, "Interval, at least 10s; 0s turns it off.").orZero(minReconcileInterval)),
	}
}

func repositoryTypes() []string {
	types := core.RepositoryTypes()
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return names
}

func (k *KafkaTopic) key() key {
	return object("kafka", "Topic of the repository's change notifications.",
		brokers(&k.Brokers),
		text("topic", &k.Topic, "", "Name of the topic; default for type song: "+defaultSongTopic+".").
			matching(topicPattern, "a topic's name: letters, digits, dots, underscores and hyphens, at most 249"),
		group(&k.Group))
}

func (i *Ingest) key() key {
	return object("ingest", "Sources of requests for all repositories.",
		object("kafka", "Topic of index requests in the format of Maestro's clients.",
			brokers(&i.Kafka.Brokers),
			text("requestTopic", &i.Kafka.RequestTopic, "maestro_index_requests", "Name of the topic.").require().
				matching(topicPattern, "a topic's name: letters, digits, dots, underscores and hyphens, at most 249"),
			group(&i.Kafka.Group)))
}

func brokers(target *[]string) key {
	return list("brokers", target, nil, "Kafka bootstrap brokers, host:port each; empty turns the topic off.").
		matching(brokerPattern, "host:port")
}

func group(target *string) key {
	return text("group", target, "tutti", "Consumer group, which stores the offsets.").require()
}
