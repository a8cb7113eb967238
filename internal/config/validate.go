package config

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/base/setting"
	"tutti/internal/core"
)

const (
	// maxIndexName bounds an alias in bytes: the engine's limit is 255, a rebuild's alias has a suffix, and a physical index a time of 15
	// bytes.
	maxIndexName = 255 - len(core.NextSuffix) - 15
)

// validate reports contradictions between keys. root holds the values that were set and their sources.
func (c *Config) validate(root *setting.Node, f *setting.ErrorList) {
	c.validateServer(root.Member("server"), f)
	c.validateQueue(f)
	c.validateIndex(root.Member("index"), f)
	c.validateRepositories(root.Member("repositories"), f)
	c.Ingest.Kafka.validate("ingest.kafka", f)
	c.validateTopics(f)
	c.Catalogues.validate(root.Member("catalogues"), f)
	c.Store.validate(f)
	c.Schemas.validate(f)
	c.Auth.validate(f)
	c.Tracing.validate(root.Member("tracing"), f)
	c.validateAlerts(root.Member("alerts"), f)
}

func (c *Config) validateServer(given *setting.Node, f *setting.ErrorList) {
	s := c.Server
	if s.Listen != "" {
		switch {
		case !hostPort(s.Listen):
			f.Add("server.listen", sourceOf(given, "listen"), "write an address and a port, such as 127.0.0.1:8080",
				"%q is not host:port", s.Listen)
		case c.Auth.Mode == ModeNone && !c.Auth.AllowInsecure && !s.Loopback():
			f.Add("server.listen", sourceOf(given, "listen"),
				"listen on 127.0.0.1, set auth.mode: token, or set auth.allowInsecure: true when the network or a proxy restricts access",
				"%s can be reached from other machines, and auth.mode none requires no token", s.Listen)
		}
	}
	if s.Profiling != "" && !hostPort(s.Profiling) {
		f.Add("server.profiling", sourceOf(given, "profiling"), "write a port or an address and a port, such as :6060", "%q is not host:port", s.Profiling)
	}
	switch {
	case s.TLS.CertFile != "" && s.TLS.KeyFile == "":
		f.Add("server.tls.keyFile", sourceOf(given, "tls"), "set the file of the certificate's private key", "is missing")
	case s.TLS.CertFile == "" && s.TLS.KeyFile != "":
		f.Add("server.tls.certFile", sourceOf(given, "tls"), "set the file of the certificate", "is missing")
	}
	if strings.Contains(s.BasePath, "//") {
		f.Add("server.basePath", sourceOf(given, "basePath"), "", "%q has an empty segment", s.BasePath)
	}
	if s.PublicURL != "" && (!absoluteHTTP(s.PublicURL) || hasUser(s.PublicURL) || strings.ContainsAny(s.PublicURL, "?#")) {
		f.Add("server.publicUrl", sourceOf(given, "publicUrl"), "such as https://tutti.example.org", "%q is not a plain http or https URL", setting.MaskUser(s.PublicURL))
	}
	for i, proxy := range s.TrustedProxies {
		if _, err := parseProxy(proxy); err != nil {
			f.Add(setting.Indexed("server.trustedProxies", i), "", "such as 10.0.0.7 or 10.0.0.0/8", "%q is neither an address nor a CIDR network", proxy)
		}
	}
}

// hostPort reports whether an address has a port; its host may be empty.
func hostPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	n, portErr := strconv.Atoi(port)
	return err == nil && portErr == nil && n >= 0 && n <= 65535
}

func sourceOf(n *setting.Node, name string) string {
	if m := n.Member(name); m != nil {
		return m.Source
	}
	return ""
}

func (c *Config) validateQueue(f *setting.ErrorList) {
	q := c.Queue
	for _, u := range setting.SplitList(q.URL.Reveal()) {
		parsed, err := url.Parse(u)
		if err != nil || parsed.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, parsed.Scheme) {
			f.Add("queue.url", "", "such as nats://host:4222", "%q is not a NATS URL", setting.MaskUser(u))
		}
	}
	for _, u := range setting.SplitList(q.MonitoringURL.Reveal()) {
		parsed, err := url.Parse(u)
		if err != nil || parsed.Host == "" || !slices.Contains([]string{"http", "https", "nats", "tls"}, parsed.Scheme) {
			f.Add("queue.monitoringUrl", "", "such as http://host:8222", "%q is neither an HTTP nor a NATS URL", setting.MaskUser(u))
		}
	}
	ways := 0
	for _, set := range []bool{q.CredentialsFile != "", q.NKeyFile != "", q.Username != "" || q.Password != ""} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		f.Add("queue", "", "keep one of credentialsFile, nkeyFile, and username with password", "has credentials of several kinds")
	}
	credentials("queue", q.Username, q.Password, "", "", f)
	q.TLS.validate("queue", f)
	if q.URL != "" {
		return
	}
	if q.NKeyFile != "" || q.Username != "" || q.TLS != (ClientTLS{}) {
		f.Add("queue.url", "", "set queue.url, or remove the credentials and the files of TLS", "is empty, but the embedded queue has no credentials")
	}
	if q.MonitoringURL != "" {
		f.Add("queue.monitoringUrl", "", "set queue.url too", "is set, but the embedded queue has no other server")
	}
	if q.Replicas > 1 {
		f.Add("queue.replicas", "", "set queue.url to a cluster, or remove replicas", "the embedded queue has one server, %d replicas need a cluster", q.Replicas)
	}
	if q.CredentialsFile != "" {
		f.Add("queue.credentialsFile", "", "set queue.url too", "the embedded queue has no credentials")
	}
}

func (c *Config) validateIndex(given *setting.Node, f *setting.ErrorList) {
	i := c.Index
	for _, u := range i.URLs() {
		if !absoluteHTTP(u) {
			f.Add("index.url", sourceOf(given, "url"), "such as https://host:9200", "%q is not an absolute http or https URL", setting.MaskUser(u))
		} else if hasUser(u) {
			f.Add("index.url", sourceOf(given, "url"), "use index.username and index.password", "the URL contains credentials")
		}
	}
	i.TLS.validate("index", f)
	credentials("index", i.Username, i.Password, "index.apiKey", i.APIKey, f)
	if i.AWS.Region == "" && i.AWS.Service == "aoss" {
		f.Add("index.aws.region", sourceOf(given, "aws"), "such as eu-west-1", "is missing, but a service is set")
	}
	if i.AWS.Region != "" && (i.Username != "" || i.Password != "" || i.APIKey != "") {
		f.Add("index.aws", sourceOf(given, "aws"), "keep one of them", "is set in addition to a username, a password or an API key")
	}
	if i.URL == "" && (i.AWS.Region != "" || i.Username != "" || i.Password != "" || i.APIKey != "" || i.TLS != (ClientTLS{})) {
		f.Add("index.url", "", "set index.url, or remove the credentials and the files of TLS", "is empty, but the embedded index has no credentials")
	}
}

// credentials reports incomplete basic authentication and two forms of credentials.
func credentials(path, username string, password setting.Secret, otherPath string, other setting.Secret, f *setting.ErrorList) {
	switch {
	case (username != "" || password != "") && other != "":
		f.Add(otherPath, "", "keep one of them", "is set in addition to a username or password")
	case username == "" && password != "":
		f.Add(path+".username", "", "", "is missing, but a password is set")
	case username != "" && password == "":
		f.Add(path+".password", "", "", "is missing, but a username is set")
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

// validateBrokers reports invalid ports. Other invalid addresses were reported before and are empty.
func validateBrokers(at string, brokers []string, f *setting.ErrorList) {
	for i, broker := range brokers {
		if broker == "" {
			continue
		}
		_, port, err := net.SplitHostPort(broker)
		if n, portErr := strconv.Atoi(port); err != nil || portErr != nil || n < 1 || n > 65535 {
			f.Add(setting.Indexed(at+".brokers", i), "", "such as kafka.example.org:9092", "%q is not host:port", broker)
		}
	}
}
