package settings

import (
	"path/filepath"

	"tutti/internal/config"
	"tutti/internal/queue"
)

// QueueDir returns the folder of the embedded queue.
func QueueDir(cfg config.Config) string { return filepath.Join(cfg.DataDir, "queue") }

// QueueSecurity returns how connections to the servers of a queue are secured. A password is read from its file for each connection.
func QueueSecurity(q config.Queue) queue.Security {
	s := queue.Security{CredentialsFile: q.CredentialsFile, NKeyFile: q.NKeyFile, Username: q.Username, TLS: q.TLS.Files("queue")}
	if q.Username != "" {
		s.Password = secretOf("queue.password", q.Password, q.PasswordFile)
	}
	return s
}
