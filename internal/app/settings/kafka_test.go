package settings_test

import (
	"os"
	"path/filepath"
	"testing"

	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
)

// TestSecretsAreReadForEachUse replaces and removes the file of a password between connections.
func TestSecretsAreReadForEachUse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	var k config.KafkaConnection
	k.SASL.Mechanism, k.SASL.PasswordFile = "PLAIN", file
	password := settings.KafkaConnection(settings.KafkaKey(1), k).SASL.Password
	for _, want := range []string{"first", "second"} {
		if err := os.WriteFile(file, []byte(want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := password(); err != nil || got != want {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	const message = "repositories[1].notifications.kafka.sasl.passwordFile: "
	if _, err := password(); core.CodeOf(err) != core.CodeUnavailable || len(core.MessageOf(err)) <= len(message) || core.MessageOf(err)[:len(message)] != message {
		t.Errorf("got %v", err)
	}
}
