package config

import "tutti/internal/base/setting"

// Entries describes every key of the file.
func Entries() []setting.Entry {
	var c Config
	return setting.Describe(c.keys())
}
