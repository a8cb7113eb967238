package config

import (
	"os"
	"slices"

	"tutti/internal/base/setting"
	"tutti/internal/config/foreign"
	"tutti/internal/core"
)

// Load loads a configuration file, "" for none, and the environment, a list of NAME=value as os.Environ returns it. The variables of
// tutti take precedence over the file. Those of Maestro, Arranger, Song's authentication and OpenTelemetry set keys that neither sets. Load returns a
// complete, validated Config, or all errors at once: each is a core.Error whose Message starts with the key's path (Errors).
func Load(file string, environ []string) (Config, error) {
	c, _, err := loadFile(file, environ)
	return c, err
}

// Effective loads like Load and returns the result as a YAML file with all defaults. Secrets are masked. With origins each value that the
// file or the environment sets has a comment with its line or variable.
func Effective(file string, environ []string, origins bool) ([]byte, error) {
	c, given, err := loadFile(file, environ)
	if err != nil {
		return nil, err
	}
	if !origins {
		given = nil
	}
	return c.yaml(given)
}

// loadFile returns also the values that the file and the environment set.
func loadFile(file string, environ []string) (Config, *setting.Node, error) {
	root := setting.NewObject("")
	var found setting.ErrorList
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return Config{}, nil, core.NewError(core.CodeInvalid, "the configuration file "+file+" cannot be read: "+setting.Reason(err))
		}
		root = setting.Parse(data, &found)
	}
	c, err := load(root, environ, &found)
	return c, root, err
}

// Parse is like Load with the file's content.
func Parse(data []byte, environ []string) (Config, error) {
	var found setting.ErrorList
	root := setting.Parse(data, &found)
	return load(root, environ, &found)
}

func load(root *setting.Node, environ []string, found *setting.ErrorList) (Config, error) {
	if root == nil {
		return Config{}, found.Err()
	}
	var c, scratch Config
	setting.Overlay(root, environ, scratch.keys(), found)
	fromMaestro := foreign.Maestro(root, environ)
	production, fromArranger := foreign.Arranger(root, environ)
	fromSong := foreign.Song(root, environ, found)
	fromOTel := overlayOTel(root, environ)
	addLocal(root)
	excluded := foreign.Exclusions(root, environ, found)
	setting.Decode(root, c.keys(), found)
	c.Catalogues.Production = production
	c.fillTopics()
	c.readMappings(found)
	c.validate(root, found)
	if err := found.Err(); err != nil {
		return Config{}, err
	}
	c.Warnings = slices.Concat(
		fromMaestro.All(), excluded, fromArranger.All(), fromSong.All(), fromOTel, c.embeddedWarning(), c.kafkaWarnings(),
	)
	return c, nil
}

// Default returns the configuration of an empty file.
func Default() Config {
	var c Config
	root := setting.NewObject("")
	addLocal(root)
	setting.Decode(root, c.keys(), &setting.ErrorList{})
	c.Auth.fillDefaultAccess()
	return c
}
