// Package config owns the configuration: a YAML file and the environment become one validated Config, and every fault is
// named with its key's path, all at once (CONTRACT section 9). It imports core alone and opens nothing but the files that
// it is told to read.
package config
