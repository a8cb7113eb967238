package settings

import (
	"tutti/ingest/kafka/connection"
	"tutti/internal/base/setting"
	"tutti/internal/config"
	"tutti/internal/core"
)

// RequestTopicKey is the key of the topic of index requests.
const RequestTopicKey = "ingest.kafka"

// KafkaKey returns the key of the topic of a repository's change notifications.
func KafkaKey(repository int) string {
	return setting.Indexed("repositories", repository) + ".notifications.kafka"
}

// KafkaConnection returns the connection to brokers of a configuration. Its secrets are read from their files for each use, if they have
// files.
func KafkaConnection(key string, k config.KafkaConnection) connection.Config {
	c := connection.Config{Key: key, Brokers: k.Brokers}
	if k.TLS {
		files := k.Files.Files(key)
		c.TLS = &files
	}
	if k.SASL.Mechanism == "" {
		return c
	}
	o, at := k.SASL.OAuth, key+".sasl"
	c.SASL = connection.SASL{
		Mechanism: k.SASL.Mechanism, Username: k.SASL.Username, Password: secretOf(at+".password", k.SASL.Password, k.SASL.PasswordFile),
		OAuth: connection.OAuth{
			TokenURL: o.TokenURL.Reveal(), ClientID: o.ClientID, Scope: o.Scope, TLS: o.Files.Files(at + ".oauth"),
			ClientSecret: secretOf(at+".oauth.clientSecret", o.ClientSecret, o.ClientSecretFile),
		},
	}
	return c
}

// secretOf returns a function that returns a secret, as it is in its file now.
func secretOf(key string, secret setting.Secret, file string) func() (string, error) {
	if file == "" {
		return func() (string, error) { return secret.Reveal(), nil }
	}
	return func() (string, error) {
		secret, err := setting.ReadSecret(file)
		if err != nil {
			return "", &core.Error{
				Code: core.CodeUnavailable, Message: key + "File: " + err.Error(), Hint: "write the secret into the file; it is read again with the next connection",
			}
		}
		return secret.Reveal(), nil
	}
}
