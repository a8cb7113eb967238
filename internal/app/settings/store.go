package settings

import (
	"path/filepath"

	"tutti/internal/config"
	"tutti/internal/store"
)

// Store returns how the store of a configuration is opened: its URL, or its folder.
func Store(cfg config.Config) store.Config {
	return store.Config{URL: cfg.Store.URL.Reveal(), TLS: cfg.Store.TLS.Files("store"), Dir: filepath.Join(cfg.DataDir, "store")}
}
