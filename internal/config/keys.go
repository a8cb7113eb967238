package config

import (
	"math"
	"time"

	"tutti/internal/core"
)

// Patterns of keys, here because the schema shows them too.
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

// indexNamePattern is what Elasticsearch takes as an index's name, less a leading dot: those are the engine's own.
const indexNamePattern = `^[^A-Z\\/*?"<>|\s,#:._+-][^A-Z\\/*?"<>|\s,#:]*$`

// Defaults that more than one place speaks of.
const (
	defaultStates    = "PUBLISHED"
	defaultSongTopic = "song-analysis"
	// leastReconcile keeps a run from being asked for again before the one before can have ended.
	leastReconcile = 10 * time.Second
)

// keys returns every key of the file, bound to c.
func (c *Config) keys() []key {
	return []key{
		c.Server.key(),
		text("dataDir", &c.DataDir, "./tutti-data", "Folder of everything that is kept on this machine.").needed(),
		object("log", "What is logged.",
			text("level", &c.Log.Level, "info", "Least level that is logged.").oneOf("debug", "info", "warn", "error").anyCase(),
			text("format", &c.Log.Format, "text", "Format of a line.").oneOf("text", "json")),
		c.Queue.key(),
		object("deadLetters", "What is kept of records that were given up.",
			number("maxBodies", &c.DeadLetters.MaxBodies, 10_000, 1, math.MaxInt32,
				"Dead letters of one repository that keep a document; others keep its size and hash.")),
		c.Index.key(),
		c.Store.key(),
		{
			name: "repositories", doc: "Sources of records; without any there is the built-in one, {code: local, type: local, indexName: analyses}.",
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
	return object("server", "Where and how requests are answered.",
		text("listen", &s.Listen, "127.0.0.1:8080", "TCP address, host:port.").needed(),
		list("hosts", &s.Hosts, nil, "Names beside loopback ones that the Host header may carry with auth.mode none; * for any.").
			matching(hostPattern, "a host name without scheme or path, or *"),
		text("basePath", &s.BasePath, "", "Prefix of every route, for a reverse proxy.").
			matching(basePathPattern, "a plain path that starts with /"),
		size("maxBodyBytes", &s.MaxBodyBytes, 10<<20, 1, "Largest request body in bytes."),
		size("maxBytesInFlight", &s.MaxBytesInFlight, 256<<20, 1<<20,
			"Memory for large request bodies and records, and what is made of them, a quarter for each kind, in bytes; further ones wait."),
		object("tls", "Certificate to answer with over HTTPS, read again when its files change; without it HTTP is spoken.",
			text("certFile", &s.TLS.CertFile, "", "PEM file of the server's certificate, followed by those between it and its authority."),
			text("keyFile", &s.TLS.KeyFile, "", "PEM file of the certificate's private key, without a password.")),
		number("maxConnections", &s.MaxConnections, 0, 0, math.MaxInt32,
			"Connections that are served at once; on a few more only /ping, /ready and /metrics are. 0 for half of the files that the process may have open, at most 8192."),
		number("maxConnectionsPerAddress", &s.MaxConnectionsPerAddress, 0, 0, math.MaxInt32,
			"How many of them one IPv4 address or IPv6 /64 network may have; 0 for half."),
		list("trustedProxies", &s.TrustedProxies, nil,
			"Addresses and CIDR networks of reverse proxies: maxConnectionsPerAddress does not apply to them, and their X-Forwarded-For tells callers apart."),
		object("cors", "Which pages of other origins a browser lets read answers.",
			list("origins", &s.CORS.Origins, nil, "Origins, scheme://host[:port] each, or * for any; none turns CORS off.").
				matching(originPattern, "an origin, scheme://host[:port] without a path, or *")),
		duration("startTimeout", &s.StartTimeout, time.Minute, "How long a start waits for the queue."),
		duration("shutdownTimeout", &s.ShutdownTimeout, 10*time.Second, "How long a stop waits for what is in hand."))
}

func (q *Queue) key() key {
	url := text("url", &q.URL, "", "NATS server, several comma-separated; empty for the embedded one.")
	url.credentials = true
	return object("queue", "Where requests are kept until they are done.", url,
		text("credentialsFile", &q.CredentialsFile, "", "NATS credentials file."),
		number("replicas", &q.Replicas, 1, 1, 5, "How many servers of a cluster hold each message."),
		number("maxPending", &q.MaxPending, 200_000, 1, math.MaxInt32, "How many requests may wait."))
}

func (i *Index) key() key {
	return object("index", "Where documents are written.",
		text("url", &i.URL, "", "Elasticsearch node, several comma-separated; empty for the embedded index."),
		text("username", &i.Username, "", "User for basic authentication."),
		secret("password", &i.Password, "Password for basic authentication."),
		secret("apiKey", &i.APIKey, "API key, base64 as the engine gives it."),
		text("caFile", &i.CAFile, "", "PEM file of certificate authorities to trust."),
		number("shards", &i.Shards, 1, 1, 1024, "Primary shards of a new index."),
		number("replicas", &i.Replicas, 1, 0, 100, "Replicas of each shard of a new index."),
		number("batchBytes", &i.BatchBytes, 2<<20, 1<<10, 100<<20, "Size of a bulk request in bytes."),
		number("maxInFlight", &i.MaxInFlight, 4, 1, 64,
			"How many bulk requests may be in flight, shared by the indexes; an index that has none may always send one."),
		number("maxRecordBytes", &i.MaxRecordBytes, core.DefaultMaxRecordBytes, 1<<10, 100<<20,
			"Largest record in bytes; a larger one becomes a dead letter."))
}

func (r *Repository) keys() []key {
	return []key{
		text("code", &r.Code, "", "What the repository is called in paths and documents.").needed().
			matching(codePattern, "letters, digits, dots, underscores and hyphens, the first a letter or digit, at most 512"),
		text("type", (*string)(&r.Type), "", "Protocol that the repository speaks; local is the built-in one, which there is once.").needed().
			oneOf(string(core.TypeSong), string(core.TypeLyric), string(core.TypeLocal)),
		text("url", &r.URL, "", "Base URL of the repository; none for type local.").
			neededUnless("type", string(core.TypeLocal), func() bool { return r.Type == core.TypeLocal }).
			matching(urlPattern, "an absolute http or https URL"),
		text("indexName", &r.IndexName, "", "Alias that documents are written to.").needed().
			matching(indexNamePattern, "an index name: lower case, none of \\ / * ? \" < > | , # : or space, not starting with . - _ or +"),
		text("name", &r.Name, "", "Name as shown in documents."),
		text("organization", &r.Organization, "", "Who runs the repository, as shown in documents."),
		text("country", &r.Country, "", "Where the repository is, as shown in documents."),
		secret("token", &r.Token, "Bearer token for the repository."),
		text("username", &r.Username, "", "User for basic authentication."),
		secret("password", &r.Password, "Password for basic authentication."),
		duration("timeout", &r.Timeout, 30*time.Second, "Longest wait for the repository's next word."),
		number("pageSize", &r.PageSize, 500, 2, 10_000,
			"Records per call; at least 2, as each page repeats the last record of the one before. Fewer while a page takes over 10 s."),
		number("concurrency", &r.Concurrency, 4, 1, 64, "Calls that may be under way."),
		text("mappingFile", &r.MappingFile, "", "JSON file with the index's mapping; empty lets tutti make one."),
		object("song", "For types song and local.",
			list("states", &r.Song.States, []string{defaultStates}, "Analysis states that belong into the index.").
				matching(stateText, "an analysis state such as PUBLISHED").needed()),
		object("lyric", "For type lyric.",
			text("categoryId", &r.Lyric.CategoryID, "", "Category whose records belong into the index.").orNumber().
				matching(categoryPattern, "a category's id, such as 1"),
			flag("validOnly", &r.Lyric.ValidOnly, true, "Leaves out records that do not fit their dictionary."),
			text("entity", &r.Lyric.Entity, "", "Takes records of this entity alone, such as the category's central one; empty takes all.")),
		object("notifications", "How the repository tells of its changes.",
			r.Notifications.Kafka.key(),
			object("webhook", "Posts to /notifications and the repository's code.",
				secret("secret", &r.Notifications.Webhook.Secret, "Key of the signature that each post must carry; empty asks for none."))),
		object("reconcile", "Regular comparison of the whole repository with its index.",
			duration("every", &r.Reconcile.Every, 0, "Time from one to the next, at least 10s; 0s turns it off.").offOr(leastReconcile)),
	}
}

func (k *KafkaTopic) key() key {
	return object("kafka", "Topic on which the repository tells of its changes.",
		brokers(&k.Brokers),
		text("topic", &k.Topic, "", "Name of the topic; for type song "+defaultSongTopic+" unless given.").
			matching(topicPattern, "a topic's name: letters, digits, dots, underscores and hyphens, at most 249"),
		group(&k.Group))
}

func (i *Ingest) key() key {
	return object("ingest", "Requests that belong to no single repository.",
		object("kafka", "Topic of requests to index, as Maestro's clients write it.",
			brokers(&i.Kafka.Brokers),
			text("requestTopic", &i.Kafka.RequestTopic, "maestro_index_requests", "Name of the topic.").needed().
				matching(topicPattern, "a topic's name: letters, digits, dots, underscores and hyphens, at most 249"),
			group(&i.Kafka.Group)))
}

func brokers(target *[]string) key {
	return list("brokers", target, nil, "Kafka brokers to start from, host:port each; none turns the topic off.").
		matching(brokerPattern, "host:port")
}

func group(target *string) key {
	return text("group", target, "tutti", "Consumer group that remembers how far the topic was read.").needed()
}
