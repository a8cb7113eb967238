// Package settings makes the settings of each part of tutti from a configuration, the same for the process that serves and for the commands
// that examine what it would use. Secrets that are in files are read for each use. It must not import internal/app/check.
package settings
