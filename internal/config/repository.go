package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"tutti/internal/base/setting"
	"tutti/internal/core"
	"tutti/internal/upstream"
	"tutti/internal/upstream/protocol"
)

// Repository is one source of records.
type Repository struct {
	Code string
	Type core.RepositoryType
	// URL is the base URL of the repository; empty for type local.
	URL string
	// IndexName is the alias that documents are written to. Repositories with the same one share the index.
	IndexName string
	// Name, Organization and Country are part of a document's repositories block.
	Name         string
	Organization string
	Country      string
	// Token is a bearer token; Username and Password are for basic authentication.
	Token    setting.Secret
	Username string
	Password setting.Secret
	// TLS are the files of connections with https.
	TLS ClientTLS
	// Timeout bounds one call until its headers, and each wait for more of its body.
	Timeout time.Duration
	// PageSize is the number of records per page, at least 2: pages overlap by one.
	PageSize int
	// Concurrency bounds the calls in flight.
	Concurrency int
	// GiveUpAfter is how long a run is paused because the repository does not answer before the run fails.
	GiveUpAfter time.Duration
	// Documents is the kind of documents that records become.
	Documents string
	// MappingFile is a JSON file with the index's mapping; empty for a generated one. Mapping is its content.
	MappingFile string
	Mapping     json.RawMessage
	// NewFields decides on fields that the mapping lacks: add, ignore, reject, or empty for what the mapping file says.
	NewFields string
	// Settings are those of each section; a type reads those of its own section only (Own).
	Settings map[string]upstream.Settings
	// Exclude holds the ids that exclude records from the index, by the name of their list, for the lists of all types (Exclusions).
	Exclude map[string]*[]string
	// Notifications are the channels of the repository's change notifications.
	Notifications Notifications
	Reconcile     Reconcile
}

// Notifications are the channels of a repository's change notifications.
type Notifications struct {
	Kafka   KafkaTopic
	Webhook Webhook
}

// KafkaTopic is a topic of a repository's change notifications.
type KafkaTopic struct {
	KafkaConnection
	// Topic is never empty when there are Brokers.
	Topic string
	// Group is the consumer group that stores the offsets.
	Group string
}

// Webhook authenticates a repository's change notifications over HTTP.
type Webhook struct {
	// Secret is the key of the required signature; empty for none.
	Secret setting.Secret
}

// Reconcile configures the periodic comparison of the repository with its index.
type Reconcile struct {
	// Every is the interval; zero turns it off.
	Every time.Duration
}

// Own returns the settings of the repository's type.
func (r Repository) Own() upstream.Settings { return r.Settings[protocol.Of(r.Type).Section] }

// Kind describes the documents that records become.
func (r Repository) Kind() upstream.Documents {
	kind, _ := protocol.Of(r.Type).DocumentsOf(r.Documents)
	return kind
}

// Core returns the repository as a core.Repository.
func (r Repository) Core() core.Repository {
	return core.Repository{
		Code: r.Code, Type: r.Type, URL: r.URL, IndexName: r.IndexName, Fields: r.Kind().Fields,
		Name: r.Name, Organization: r.Organization, Country: r.Country,
	}
}

// Client returns the configuration of a client of the repository, whose key is repositories[N].
func (r Repository) Client(key string) upstream.Config {
	return upstream.Config{
		TLS: r.TLS.Files(key),
		URL: r.URL, Token: r.Token.Reveal(), Username: r.Username, Password: r.Password.Reveal(), Timeout: r.Timeout,
		Concurrency: 2 * r.Concurrency, Repository: r.Code,
	}
}

// RepositoryKey returns the key of the repository with a code.
func (c *Config) RepositoryKey(code string) string {
	return setting.Indexed("repositories", slices.IndexFunc(c.Repositories, func(r Repository) bool { return r.Code == code }))
}

// minReconcileInterval keeps runs from overlapping.
const minReconcileInterval = 10 * time.Second

func (c *Config) repositoryKeys() [][]setting.Key {
	each := make([][]setting.Key, len(c.Repositories))
	for i := range c.Repositories {
		each[i] = c.Repositories[i].keys()
	}
	return each
}

func (r *Repository) keys() []setting.Key {
	return slices.Concat([]setting.Key{
		setting.Text("code", &r.Code, "", "Id of the repository in paths and documents.").Require().
			Matching(codePattern, "letters, digits, dots, underscores and hyphens, the first a letter or digit, at most 512"),
		setting.Text("type", (*string)(&r.Type), "", "Protocol of the repository; local is the built-in one, at most once.").Require().
			OneOf(typeNames(protocol.Types())...),
		setting.Text("url", &r.URL, "", "Base URL of the repository; not for type local.").
			RequireUnless("type", string(core.TypeLocal), func() bool { return r.Type == core.TypeLocal }).
			Matching(urlPattern, "an absolute http or https URL"),
		setting.Text("indexName", &r.IndexName, "", "Alias that documents are written to; repositories with the same one share the index.").Require().
			Matching(indexNamePattern, "an index name: lower case, none of \\ / * ? \" < > | , # : or space, not starting with . - _ or +"),
		setting.Text("name", &r.Name, "", "Name as shown in documents."),
		setting.Text("organization", &r.Organization, "", "Who runs the repository, as shown in documents."),
		setting.Text("country", &r.Country, "", "Where the repository is, as shown in documents."),
		setting.SecretText("token", &r.Token, "Bearer token for the repository."),
		setting.Text("username", &r.Username, "", "User for basic authentication."),
		setting.SecretText("password", &r.Password, "Password for basic authentication."),
	}, r.TLS.keys(), []setting.Key{
		setting.Duration("timeout", &r.Timeout, 30*time.Second, "Timeout of a call until its headers, and of each wait for more of its body."),
		setting.Number("pageSize", &r.PageSize, 500, 2, 10_000,
			"Records per page; at least 2, since each page repeats the last record of the previous one. Reduced while a page takes more than 10 s, "+
				"and when the repository does not return one of that size."),
		setting.Number("concurrency", &r.Concurrency, 4, 1, 64, "Maximum number of calls in flight."),
		setting.Text("documents", &r.Documents, upstream.DefaultDocuments,
			"Documents that records become: record or analysis for one document per record; file or file-v4 for one per file of an analysis.").
			OneOf(documentNames()...),
		setting.Text("mappingFile", &r.MappingFile, "", "JSON file whose mapping is added to the generated one and overrides it; empty for none."),
		setting.Text("newFields", &r.NewFields, "", "Fields of records that the mapping lacks: added to it, kept but not found, or a reason to reject the "+
			"record; overrides dynamic in mappingFile. Empty for add, or ignore where mappingFile has dynamic: false.").OneOf("", "add", "ignore", "reject"),
		setting.Object("upstream", "Outages of the repository.",
			setting.Duration("giveUpAfter", &r.GiveUpAfter, time.Hour,
				"How long a run is paused because the repository does not answer before the run fails.")),
	}, r.sectionKeys(), []setting.Key{
		r.exclusionKey(),
		setting.Object("notifications", "Change notifications of the repository.",
			r.Notifications.Kafka.key(),
			setting.Object("webhook", "Notifications with POST /notifications/ and the repository's code.",
				setting.SecretText("secret", &r.Notifications.Webhook.Secret, "Key of the required signature; empty for none."))),
		setting.Object("reconcile", "Periodic comparison of the repository with its index.",
			setting.Duration("every", &r.Reconcile.Every, 0, "Interval, at least 10s; 0s turns it off.").OrZero(minReconcileInterval)),
	})
}

func (k *KafkaTopic) key() setting.Key {
	return setting.Object("kafka", "Topic of the repository's change notifications.", slices.Concat(k.keys(), []setting.Key{
		setting.Text("topic", &k.Topic, "", "Name of the topic"+defaultTopics()+".").
			Matching(topicPattern, "a topic's name: letters, digits, dots, underscores and hyphens, at most 249"),
		group(&k.Group),
	})...)
}

// sections returns one type of each section.
func sections() []upstream.Type {
	var found []upstream.Type
	for _, t := range protocol.Types() {
		if !slices.ContainsFunc(found, func(other upstream.Type) bool { return other.Section == t.Section }) {
			found = append(found, t)
		}
	}
	return found
}

func (r *Repository) sectionKeys() []setting.Key {
	if r.Settings == nil {
		r.Settings = make(map[string]upstream.Settings)
		for _, t := range sections() {
			r.Settings[t.Section] = t.NewSettings()
		}
	}
	var keys []setting.Key
	for _, t := range sections() {
		names := typeNames(slices.DeleteFunc(protocol.Types(), func(other upstream.Type) bool { return other.Section != t.Section }))
		doc := "For type " + names[0] + "."
		if len(names) > 1 {
			doc = "For types " + strings.Join(names, " and ") + "."
		}
		keys = append(keys, setting.Object(t.Section, doc, r.Settings[t.Section].Keys()...))
	}
	return keys
}

// documentNames returns the names of all kinds of documents.
func documentNames() []string {
	var names []string
	for _, t := range protocol.Types() {
		for _, kind := range t.Documents {
			if !slices.Contains(names, kind.Name) {
				names = append(names, kind.Name)
			}
		}
	}
	return names
}

func typeNames(types []upstream.Type) []string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t.Name)
	}
	return names
}

// defaultTopics documents the topics that types have by default.
func defaultTopics() string {
	var text strings.Builder
	for _, t := range protocol.Types() {
		if t.Topic != "" {
			text.WriteString("; default for type " + string(t.Name) + ": " + t.Topic)
		}
	}
	return text.String()
}

// DefaultRepository returns a repository with all defaults; the caller sets the required keys.
func DefaultRepository() Repository {
	var r Repository
	setting.Decode(nil, r.keys(), &setting.ErrorList{})
	return r
}

// fillTopics sets the default topics. Without brokers it has no effect, so that the effective configuration shows no topic.
func (c *Config) fillTopics() {
	for i := range c.Repositories {
		r := &c.Repositories[i]
		if k := &r.Notifications.Kafka; len(k.Brokers) > 0 && k.Topic == "" {
			k.Topic = protocol.Of(r.Type).Topic
		}
	}
}

// CoreRepositories returns the repositories for other packages.
func (c *Config) CoreRepositories() []core.Repository {
	all := make([]core.Repository, len(c.Repositories))
	for i := range c.Repositories {
		all[i] = c.Repositories[i].Core()
	}
	return all
}

func (c *Config) readMappings(f *setting.ErrorList) {
	for i := range c.Repositories {
		r := &c.Repositories[i]
		if r.MappingFile == "" {
			continue
		}
		at := setting.Indexed("repositories", i) + ".mappingFile"
		raw, err := r.ReadMapping()
		if err != nil {
			f.Add(at, "", "", "%s", core.MessageOf(err))
			continue
		}
		r.Mapping = raw
	}
}

// ReadMapping returns the content of the mapping file, a JSON object, as it is now, nil without one. An error is CodeInvalid and names
// the file.
func (r *Repository) ReadMapping() (json.RawMessage, error) {
	file := r.MappingFile
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	switch trimmed := bytes.TrimSpace(data); {
	case err != nil:
		return nil, core.NewError(core.CodeInvalid, file+" cannot be read: "+setting.Reason(err))
	case !json.Valid(trimmed):
		return nil, core.NewError(core.CodeInvalid, file+" is not JSON")
	case trimmed[0] != '{':
		return nil, core.NewError(core.CodeInvalid, file+" does not contain a JSON object")
	default:
		return trimmed, nil
	}
}

func (c *Config) validateRepositories(given *setting.Node, f *setting.ErrorList) {
	codes, indices, local := map[string]int{}, map[string]int{}, -1
	for i, r := range c.Repositories {
		at := setting.Indexed("repositories", i)
		r.validate(at, given.Item(i), f)
		if r.Type == core.TypeLocal && local >= 0 {
			f.Add(at+".type", "", "remove one of them", "%s is of type local too, but there is only one built-in repository", setting.Indexed("repositories", local))
		} else if r.Type == core.TypeLocal {
			local = i
		}
		if first, twice := codes[r.Code]; twice && r.Code != "" {
			f.Add(at+".code", "", "use a different code for each repository", "%q is also the code of %s", r.Code, setting.Indexed("repositories", first))
		} else {
			codes[r.Code] = i
		}
		if first, shared := indices[r.IndexName]; !shared {
			indices[r.IndexName] = i
		} else if policy := c.Repositories[first].NewFields; policy != r.NewFields && r.IndexName != "" {
			f.Add(at+".newFields", "", "set the same newFields for all repositories of an index, or use different indexes",
				"%q is not that of %s, %q, which shares the index %s", r.NewFields, setting.Indexed("repositories", first), policy, r.IndexName)
		} else if file := c.Repositories[first].MappingFile; file != r.MappingFile && r.IndexName != "" {
			f.Add(at+".mappingFile", "", "set the same mappingFile for all repositories of an index, or use different indexes",
				"%q is not that of %s, %q, which shares the index %s", r.MappingFile, setting.Indexed("repositories", first), file, r.IndexName)
		}
	}
}

func (r Repository) validate(at string, given *setting.Node, f *setting.ErrorList) {
	if len(r.IndexName) > maxIndexName {
		f.Add(at+".indexName", "", "", "has %d bytes, the limit is %d", len(r.IndexName), maxIndexName)
	}
	for _, suffix := range []string{core.NextSuffix, core.PreviousSuffix} {
		if strings.HasSuffix(r.IndexName, suffix) {
			f.Add(at+".indexName", "", "", "must not end in %s, a suffix of the aliases of a rebuild", suffix)
		}
	}
	r.validateSections(at, given, f)
	r.validateExclusions(at+".exclude", given.Member("exclude"), f)
	if _, known := protocol.Of(r.Type).DocumentsOf(r.Documents); !known && r.Type != "" && slices.Contains(documentNames(), r.Documents) {
		f.Add(at+".documents", "", "remove it: only analyses, of types song and local, have other documents",
			"%s does not apply to type %s", r.Documents, r.Type)
	}
	if r.Type == core.TypeLocal {
		r.validateLocal(at, f)
		return
	}
	r.validateURL(at, f)
	credentials(at, r.Username, r.Password, at+".token", r.Token, f)
	r.TLS.validate(at, f)
	r.validateTopic(at+".notifications.kafka", given.Member("notifications").Member("kafka"), f)
}

// validateSections reports a required setting of the type that is missing, and sections of other types. Defaults are ignored, so that the
// effective configuration, which contains all of them, can be loaded.
func (r Repository) validateSections(at string, given *setting.Node, f *setting.ErrorList) {
	defaults := DefaultRepository()
	for _, t := range sections() {
		section := at + "." + t.Section
		if t.Section == protocol.Of(r.Type).Section {
			if key, hint := r.Settings[t.Section].Missing(); key != "" && !given.Member(t.Section).IsSet(key) {
				f.Add(section+"."+key, "", hint, "is required for type %s", r.Type)
			}
		} else if r.Type != "" && !reflect.DeepEqual(r.Settings[t.Section], defaults.Settings[t.Section]) {
			f.Add(section, "", "remove it, or use type "+string(t.Name), "does not apply to type %s", r.Type)
		}
	}
}

func (r Repository) validateTopic(at string, given *setting.Node, f *setting.ErrorList) {
	k := r.Notifications.Kafka
	k.validate(at, f)
	switch {
	case len(k.Brokers) == 0 && k.Topic != "":
		f.Add(at+".brokers", "", "set the brokers, or remove the topic", "is missing, but a topic is set")
	case len(k.Brokers) > 0 && k.Topic == "" && !given.IsSet("topic"):
		f.Add(at+".topic", "", fmt.Sprintf("set the topic that the repository writes to; type %s has no default name", r.Type), "is missing, but brokers are set")
	}
}

func (r Repository) validateURL(at string, f *setting.ErrorList) {
	switch {
	case r.URL == "":
	case !absoluteHTTP(r.URL):
		f.Add(at+".url", "", "such as https://song.example.org", "%q is not an absolute http or https URL", setting.MaskUser(r.URL))
	case hasUser(r.URL):
		f.Add(at+".url", "", "use username and password", "the URL contains credentials")
	case strings.ContainsAny(r.URL, "?#"):
		f.Add(at+".url", "", "", "%q has a query or a fragment", setting.MaskUser(r.URL))
	}
}
