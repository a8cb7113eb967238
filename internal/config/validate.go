package config

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/core"
)

const (
	// nextSuffix is the suffix of the alias of a rebuild's new index.
	nextSuffix = "--next"
	// maxIndexName bounds an alias in bytes: the engine's limit is 255, and the name of a rebuild's physical index consists of the
	// alias, nextSuffix and a time of 15 bytes.
	maxIndexName = 255 - len(nextSuffix) - 15
)

// validate reports contradictions between keys. root holds the values that were set and their sources.
func (c *Config) validate(root *node, f *errorList) {
	c.validateServer(root.member("server"), f)
	c.validateQueue(f)
	c.validateIndex(root.member("index"), f)
	c.validateRepositories(root.member("repositories"), f)
	validateBrokers("ingest.kafka", c.Ingest.Kafka.Brokers, f)
	c.Catalogues.validate(root.member("catalogues"), f)
	c.Schemas.validate(f)
	c.Auth.validate(f)
}

func (c *Config) validateServer(given *node, f *errorList) {
	s := c.Server
	if s.Listen != "" {
		_, port, err := net.SplitHostPort(s.Listen)
		n, portErr := strconv.Atoi(port)
		switch {
		case err != nil || portErr != nil || n < 0 || n > 65535:
			f.add("server.listen", sourceOf(given, "listen"), "write an address and a port, such as 127.0.0.1:8080",
				"%q is not host:port", s.Listen)
		case c.Auth.Mode == ModeNone && !c.Auth.AllowInsecure && !s.Loopback():
			f.add("server.listen", sourceOf(given, "listen"),
				"listen on 127.0.0.1, set auth.mode: token, or set auth.allowInsecure: true when the network or a proxy restricts access",
				"%s can be reached from other machines, and auth.mode none requires no token", s.Listen)
		}
	}
	switch {
	case s.TLS.CertFile != "" && s.TLS.KeyFile == "":
		f.add("server.tls.keyFile", sourceOf(given, "tls"), "set the file of the certificate's private key", "is missing")
	case s.TLS.CertFile == "" && s.TLS.KeyFile != "":
		f.add("server.tls.certFile", sourceOf(given, "tls"), "set the file of the certificate", "is missing")
	}
	if strings.Contains(s.BasePath, "//") {
		f.add("server.basePath", sourceOf(given, "basePath"), "", "%q has an empty segment", s.BasePath)
	}
	for i, proxy := range s.TrustedProxies {
		if _, err := parseProxy(proxy); err != nil {
			f.add(indexed("server.trustedProxies", i), "", "such as 10.0.0.7 or 10.0.0.0/8", "%q is neither an address nor a CIDR network", proxy)
		}
	}
}

func sourceOf(n *node, name string) string {
	if m := n.member(name); m != nil {
		return m.source
	}
	return ""
}

func (c *Config) validateQueue(f *errorList) {
	q := c.Queue
	for _, u := range splitList(q.URL) {
		parsed, err := url.Parse(u)
		if err != nil || parsed.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, parsed.Scheme) {
			f.add("queue.url", "", "such as nats://host:4222", "%q is not a NATS URL", maskUser(u))
		}
	}
	if q.URL != "" {
		return
	}
	if q.Replicas > 1 {
		f.add("queue.replicas", "", "set queue.url to a cluster, or keep replicas at 1", "the embedded queue has one server, %d replicas need a cluster", q.Replicas)
	}
	if q.CredentialsFile != "" {
		f.add("queue.credentialsFile", "", "set queue.url too", "the embedded queue has no credentials")
	}
}

func (c *Config) validateIndex(given *node, f *errorList) {
	i := c.Index
	for _, u := range i.URLs() {
		if !absoluteHTTP(u) {
			f.add("index.url", sourceOf(given, "url"), "such as https://host:9200", "%q is not an absolute http or https URL", maskUser(u))
		} else if hasUser(u) {
			f.add("index.url", sourceOf(given, "url"), "use index.username and index.password", "the URL contains credentials")
		}
	}
	credentials("index", i.Username, i.Password, "index.apiKey", i.APIKey, f)
	if i.URL == "" && (i.Username != "" || i.Password != "" || i.APIKey != "" || i.CAFile != "") {
		f.add("index.url", "", "set index.url, or remove the credentials and caFile", "is empty, but the embedded index has no credentials")
	}
}

// credentials reports incomplete basic authentication and two forms of credentials.
func credentials(path, username string, password Secret, otherPath string, other Secret, f *errorList) {
	switch {
	case (username != "" || password != "") && other != "":
		f.add(otherPath, "", "keep one of them", "is set in addition to a username or password")
	case username == "" && password != "":
		f.add(path+".username", "", "", "is missing, but a password is set")
	case username != "" && password == "":
		f.add(path+".password", "", "", "is missing, but a username is set")
	}
}

func (c *Config) validateRepositories(given *node, f *errorList) {
	codes, indices, local := map[string]int{}, map[string]int{}, -1
	for i, r := range c.Repositories {
		at := indexed("repositories", i)
		r.validate(at, given.item(i), f)
		if r.Type == core.TypeLocal && local >= 0 {
			f.add(at+".type", "", "remove one of them", "%s is of type local too, but there is only one built-in repository", indexed("repositories", local))
		} else if r.Type == core.TypeLocal {
			local = i
		}
		if first, twice := codes[r.Code]; twice && r.Code != "" {
			f.add(at+".code", "", "use a different code for each repository", "%q is also the code of %s", r.Code, indexed("repositories", first))
		} else {
			codes[r.Code] = i
		}
		if first, twice := indices[r.IndexName]; twice && r.IndexName != "" {
			f.addCode(core.CodeUnsupported, at+".indexName", "", "use a different index for each repository",
				"%q is also the index of %s, and sharing an index is not supported yet", r.IndexName, indexed("repositories", first))
		} else {
			indices[r.IndexName] = i
		}
	}
}

func (r Repository) validate(at string, given *node, f *errorList) {
	if len(r.IndexName) > maxIndexName {
		f.add(at+".indexName", "", "", "has %d bytes, the limit is %d", len(r.IndexName), maxIndexName)
	}
	if strings.HasSuffix(r.IndexName, nextSuffix) {
		f.add(at+".indexName", "", "", "must not end in %s, the suffix of a rebuild's new index", nextSuffix)
	}
	r.validateType(at, given, f)
	if r.Type == core.TypeLocal {
		r.validateLocal(at, f)
		return
	}
	r.validateURL(at, f)
	credentials(at, r.Username, r.Password, at+".token", r.Token, f)
	r.validateTopic(at+".notifications.kafka", given.member("notifications").member("kafka"), f)
}

// validateType reports keys that belong to another type than the repository's. Defaults are ignored, so that the effective
// configuration, which contains all of them, can be loaded.
func (r Repository) validateType(at string, given *node, f *errorList) {
	if r.Type == core.TypeLyric {
		if r.Lyric.CategoryID == "" && !given.member("lyric").isSet("categoryId") {
			f.add(at+".lyric.categoryId", "", "set the id of a category of the repository, such as 1", "is required for type lyric")
		}
	} else if r.Type != "" && (r.Lyric.CategoryID != "" || r.Lyric.Entity != "" || !r.Lyric.ValidOnly) {
		f.add(at+".lyric", "", "remove it, or use type lyric", "does not apply to type %s", r.Type)
	}
	if r.Type == core.TypeLyric && !slices.Equal(r.Song.States, []string{defaultStates}) {
		f.add(at+".song", "", "remove it, or use type song", "does not apply to type %s", r.Type)
	}
}

func (r Repository) validateTopic(at string, given *node, f *errorList) {
	k := r.Notifications.Kafka
	validateBrokers(at, k.Brokers, f)
	switch {
	case len(k.Brokers) == 0 && k.Topic != "":
		f.add(at+".brokers", "", "set the brokers, or remove the topic", "is missing, but a topic is set")
	case len(k.Brokers) > 0 && k.Topic == "" && !given.isSet("topic") && r.Type == core.TypeLyric:
		f.add(at+".topic", "", "set the topic that Lyric writes to, it has no default name", "is missing, but brokers are set")
	}
}

// validateBrokers reports invalid ports. Other invalid addresses were reported before and are empty.
func validateBrokers(at string, brokers []string, f *errorList) {
	for i, broker := range brokers {
		if broker == "" {
			continue
		}
		_, port, err := net.SplitHostPort(broker)
		if n, portErr := strconv.Atoi(port); err != nil || portErr != nil || n < 1 || n > 65535 {
			f.add(indexed(at+".brokers", i), "", "such as kafka.example.org:9092", "%q is not host:port", broker)
		}
	}
}

func (r Repository) validateURL(at string, f *errorList) {
	switch {
	case r.URL == "":
	case !absoluteHTTP(r.URL):
		f.add(at+".url", "", "such as https://song.example.org", "%q is not an absolute http or https URL", maskUser(r.URL))
	case hasUser(r.URL):
		f.add(at+".url", "", "use username and password", "the URL contains credentials")
	case strings.ContainsAny(r.URL, "?#"):
		f.add(at+".url", "", "", "%q has a query or a fragment", r.URL)
	}
}

func absoluteHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

func hasUser(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.User != nil
}

// maskUser masks the part before an @ in each URL of a list, which may contain a password.
func maskUser(s string) string {
	if !strings.Contains(s, "@") {
		return s
	}
	parts := strings.Split(s, ",")
	for i, part := range parts {
		at := strings.LastIndexByte(part, '@')
		if at < 0 {
			continue
		}
		scheme, _, ok := strings.Cut(part[:at], "://")
		if !ok {
			continue
		}
		parts[i] = scheme + "://" + mask + part[at:]
	}
	return strings.Join(parts, ",")
}
