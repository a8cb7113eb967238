package config

import (
	"os"
	"slices"

	"tutti/internal/config/setting"
	"tutti/internal/core"
)

// Load loads file, "" for none, and environ, a list of NAME=value such as os.Environ returns, which takes precedence; a Maestro's
// environment, an Arranger's and that of a Song's authentication set the remaining keys. It returns a complete, validated Config, or all
// errors at once: each is a core.Error whose Message starts with the key's path (Errors).
func Load(file string, environ []string) (Config, error) {
	root := setting.NewObject("")
	var found setting.ErrorList
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return Config{}, &core.Error{
				Code: core.CodeInvalid, Message: "the configuration file " + file + " cannot be read: " + setting.Reason(err), Err: err,
			}
		}
		root = setting.Parse(data, &found)
	}
	return load(root, environ, &found)
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
	rejectExclusions(environ, found)
	fromMaestro := overlayMaestro(root, environ)
	production, fromArranger := overlayArranger(root, environ)
	fromSong := overlaySong(root, environ, found)
	addLocal(root)
	setting.Decode(root, c.keys(), found)
	c.Catalogues.Production = production
	c.fillTopics()
	c.readMappings(found)
	c.validate(root, found)
	if err := found.Err(); err != nil {
		return Config{}, err
	}
	c.Warnings = slices.Concat(fromMaestro, fromArranger, fromSong, c.embeddedWarning())
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
