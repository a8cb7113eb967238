package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"

	"tutti/internal/core"
)

// Load loads file, "" for none, and environ, a list of NAME=value such as os.Environ returns, which takes precedence; a Maestro's
// environment, and then an Arranger's, sets the remaining keys. It returns a complete, validated Config, or all errors at once: each is
// a core.Error whose Message starts with the key's path (Errors).
func Load(file string, environ []string) (Config, error) {
	root := newObject("")
	var found errorList
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return Config{}, &core.Error{
				Code: core.CodeInvalid, Message: "the configuration file " + file + " cannot be read: " + reason(err), Err: err,
			}
		}
		root = parse(data, &found)
	}
	return load(root, environ, &found)
}

// Parse is like Load with the file's content.
func Parse(data []byte, environ []string) (Config, error) {
	var found errorList
	root := parse(data, &found)
	return load(root, environ, &found)
}

func load(root *node, environ []string, found *errorList) (Config, error) {
	if root == nil {
		return Config{}, found.err()
	}
	var c, scratch Config
	overlay(root, environ, scratch.keys(), found)
	rejectExclusions(environ, found)
	fromMaestro := overlayMaestro(root, environ)
	production, fromArranger := overlayArranger(root, environ)
	addLocal(root)
	newDecoder(found).object("", root, c.keys())
	c.Catalogues.Production = production
	c.fillTopics()
	c.readMappings(found)
	c.validate(root, found)
	if err := found.err(); err != nil {
		return Config{}, err
	}
	c.Warnings = slices.Concat(fromMaestro, fromArranger, c.embeddedWarning())
	return c, nil
}

// Default returns the configuration of an empty file.
func Default() Config {
	var c Config
	root := newObject("")
	addLocal(root)
	newDecoder(&errorList{}).object("", root, c.keys())
	c.Auth.fillDefaultAccess()
	return c
}

// DefaultRepository returns a repository with all defaults; the caller sets the required keys.
func DefaultRepository() Repository {
	var r Repository
	var ignored errorList
	newDecoder(&ignored).object("", nil, r.keys())
	return r
}

// fillTopics sets the default topic of Song repositories. Without brokers it has no effect, so that the effective configuration shows no
// topic.
func (c *Config) fillTopics() {
	for i := range c.Repositories {
		k := &c.Repositories[i].Notifications.Kafka
		if c.Repositories[i].Type == core.TypeSong && len(k.Brokers) > 0 && k.Topic == "" {
			k.Topic = defaultSongTopic
		}
	}
}

func (c *Config) readMappings(f *errorList) {
	for i := range c.Repositories {
		r := &c.Repositories[i]
		if r.MappingFile == "" {
			continue
		}
		at := indexed("repositories", i) + ".mappingFile"
		data, err := os.ReadFile(r.MappingFile)
		switch trimmed := bytes.TrimSpace(data); {
		case err != nil:
			f.add(at, "", "", "%s cannot be read: %s", r.MappingFile, reason(err))
		case !json.Valid(trimmed):
			f.add(at, "", "", "%s is not JSON", r.MappingFile)
		case trimmed[0] != '{':
			f.add(at, "", "", "%s does not contain a JSON object", r.MappingFile)
		default:
			r.Mapping = trimmed
		}
	}
}

// reason returns the text of a file error without the path, which is already in the message.
func reason(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}
