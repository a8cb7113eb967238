// Package setting reads the settings of a YAML file and of environment variables. Tables of Keys, each bound to a Go value, are their only
// description: files are decoded by them, variables matched, values printed, and the JSON Schema is generated from them.
package setting
