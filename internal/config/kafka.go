package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tutti/internal/base/setting"
)

// KafkaConnection says how the brokers of a topic are reached.
type KafkaConnection struct {
	// Brokers are host:port each; empty turns the topic off.
	Brokers []string
	// TLS turns TLS on, with Files.
	TLS   bool
	Files ClientTLS
	SASL  SASL
}

// SASL are credentials for brokers.
type SASL struct {
	// Mechanism is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; empty for none.
	Mechanism string
	// Username and Password are for PLAIN and SCRAM. PasswordFile is the file of Password, empty for none.
	Username     string
	Password     setting.Secret
	PasswordFile string
	OAuth        OAuth
}

// OAuth says where the tokens of OAUTHBEARER come from, by a grant of client credentials.
type OAuth struct {
	TokenURL setting.URL
	ClientID string
	// ClientSecretFile is the file of ClientSecret, empty for none.
	ClientSecret     setting.Secret
	ClientSecretFile string
	Scope            string
	Files            ClientTLS
}

// saslMechanisms are the values of SASL.Mechanism; those for a username and a password come first.
var saslMechanisms = []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"}

func (k *KafkaConnection) keys() []setting.Key {
	s, o := &k.SASL, &k.SASL.OAuth
	return slices.Concat([]setting.Key{
		setting.List("brokers", &k.Brokers, nil, "Kafka bootstrap brokers, host:port each; empty turns the topic off.").
			Matching(brokerPattern, "host:port"),
		setting.Flag("tls", &k.TLS, false, "Whether connections to the brokers use TLS."),
	}, k.Files.keys(), []setting.Key{
		setting.Object("sasl", "Credentials for the brokers.",
			setting.Text("mechanism", &s.Mechanism, "", "Mechanism of SASL; empty for none.").OneOf(append([]string{""}, saslMechanisms...)...),
			setting.Text("username", &s.Username, "", "User, for PLAIN and SCRAM."),
			setting.SecretText("password", &s.Password, "Password, for PLAIN and SCRAM; its file is read again for each connection.").KeepFile(&s.PasswordFile),
			setting.Object("oauth", "Source of tokens, for OAUTHBEARER.", slices.Concat([]setting.Key{
				setting.Address("tokenUrl", &o.TokenURL, "Token endpoint of the authorization server.").Matching(urlPattern, "an absolute http or https URL"),
				setting.Text("clientId", &o.ClientID, "", "Client id for the token endpoint."),
				setting.SecretText("clientSecret", &o.ClientSecret, "Client secret for the token endpoint; its file is read again for each token.").
					KeepFile(&o.ClientSecretFile),
				setting.Text("scope", &o.Scope, "", "Scope of the tokens; empty for that of the server."),
			}, o.Files.keys())...)),
	})
}

func (k KafkaConnection) validate(at string, f *setting.ErrorList) {
	validateBrokers(at, k.Brokers, f)
	k.Files.validate(at, f)
	if !k.TLS && k.Files != (ClientTLS{}) {
		f.Add(at+".tls", "", "set it to true, or remove the files and serverName", "is false, but files or a name for TLS are set")
	}
	k.SASL.validate(at+".sasl", f)
}

func (s SASL) validate(at string, f *setting.ErrorList) {
	missing := func(key string) { f.Add(at+"."+key, "", "", "is missing, but %s.mechanism is %s", at, s.Mechanism) }
	switch s.Mechanism {
	case "":
		if s != (SASL{}) {
			f.Add(at+".mechanism", "", "one of "+strings.Join(saslMechanisms, ", "), "is missing, but credentials are set")
		}
	case "OAUTHBEARER":
		if s.Username != "" || s.Password != "" {
			f.Add(at+".username", "", "set "+at+".oauth instead", "does not apply to %s", s.Mechanism)
		}
		for key, value := range map[string]string{
			"oauth.tokenUrl": s.OAuth.TokenURL.Reveal(), "oauth.clientId": s.OAuth.ClientID, "oauth.clientSecret": s.OAuth.ClientSecret.Reveal(),
		} {
			if value == "" {
				missing(key)
			}
		}
		if hasUser(s.OAuth.TokenURL.Reveal()) {
			f.Add(at+".oauth.tokenUrl", "", "use clientId and clientSecret", "the URL contains credentials")
		}
	default:
		if s.OAuth != (OAuth{}) {
			f.Add(at+".oauth", "", "remove it, or set the mechanism OAUTHBEARER", "does not apply to %s", s.Mechanism)
		}
		if s.Username == "" {
			missing("username")
		}
		if s.Password == "" {
			missing("password")
		}
	}
	s.OAuth.Files.validate(at+".oauth", f)
}

// validateTopics reports topics that are read by one reader but with different settings.
func (c *Config) validateTopics(f *setting.ErrorList) {
	type reader struct{ brokers, topic, group string }
	type use struct {
		at string
		of KafkaConnection
	}
	first := map[reader]use{}
	check := func(at string, k KafkaConnection, topic, group string) {
		if len(k.Brokers) == 0 {
			return
		}
		sorted := slices.Sorted(slices.Values(k.Brokers))
		id, this := reader{strings.Join(sorted, ","), topic, group}, use{at, k}
		this.of.Brokers = nil
		other, shared := first[id]
		if !shared {
			first[id] = this
			return
		}
		if other.of.TLS != this.of.TLS || other.of.Files != this.of.Files || other.of.SASL != this.of.SASL {
			f.Add(at, "", "set the same tls, files and sasl for both", "connects differently than %s, which has the same brokers, topic and group", other.at)
		}
	}
	for i, r := range c.Repositories {
		k := r.Notifications.Kafka
		check(setting.Indexed("repositories", i)+".notifications.kafka", k.KafkaConnection, k.Topic, k.Group)
	}
	check("ingest.kafka", c.Ingest.Kafka.KafkaConnection, c.Ingest.Kafka.RequestTopic, c.Ingest.Kafka.Group)
}

// kafkaWarnings returns a sentence for each connection that sends a password or a token without encryption.
func (c *Config) kafkaWarnings() []string {
	open := map[string]bool{}
	note := func(at string, k KafkaConnection) {
		if len(k.Brokers) > 0 && !k.TLS && (k.SASL.Mechanism == "PLAIN" || k.SASL.Mechanism == "OAUTHBEARER") {
			open[fmt.Sprintf("%s.tls is false, so that sasl sends its credentials unencrypted", at)] = true
		}
	}
	for i, r := range c.Repositories {
		note(setting.Indexed("repositories", i)+".notifications.kafka", r.Notifications.Kafka.KafkaConnection)
	}
	note("ingest.kafka", c.Ingest.Kafka.KafkaConnection)
	return slices.Sorted(maps.Keys(open))
}
