package foreign

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"tutti/internal/base/setting"
)

// The variables of Arranger's environment that are read (doc.go). Other programs use some of these names too.
const (
	arrangerConfigs       = "CONFIGS_PATH"
	arrangerHost          = "ES_HOST"
	arrangerUser          = "ES_USER"
	arrangerPassword      = "ES_PASS"
	arrangerMode          = "NODE_ENV"
	arrangerIntrospection = "DISABLE_GRAPHQL_INTROSPECTION"
)

// ArrangerVariables are the names of Arranger's variables that are read, for callers that start a process without them.
func ArrangerVariables() []string {
	return []string{arrangerConfigs, arrangerHost, arrangerUser, arrangerPassword, arrangerMode, arrangerIntrospection}
}

const (
	// productionMode is the only value of NODE_ENV with a meaning, case-sensitive.
	productionMode = "production"
	// elasticPort is Elasticsearch's default port, for a host without a port.
	elasticPort = "9200"
)

// arrangerIgnored returns the other variables of Arranger, sorted by name, each with the equivalent setting of tutti, "" for none.
func arrangerIgnored() [][2]string {
	return [][2]string{
		{"ALLOWED_CORS_ORIGINS", "server.cors.origins"},
		{"ALLOW_CUSTOM_DOWNLOAD_MAX_ROWS", "allowCustomMaxRows of a catalogue's downloads"},
		{"CONFIG_PATH", "catalogues.dir"},
		{"DISABLE_DOWNLOADS", "disableDownloads of a catalogue"},
		{"DISABLE_FILTERS", "disableFilters of a catalogue"},
		{"DISABLE_GRAPHQL_PLAYGROUND", ""},
		{"DOCUMENT_TYPE", "documentType of a catalogue"},
		{"DOWNLOAD_MAX_ROWS", "maxRows of a catalogue's downloads"},
		{"DOWNLOAD_STREAM_BUFFER_SIZE", ""},
		{"ENABLE_ADMIN", ""},
		{"ENABLE_DEBUG", "log.level"},
		{"ENABLE_GRAPHQL_BATCHING", ""},
		{"ENABLE_LOGS", "log.level"},
		{"ENABLE_SETS", "enableSets of a catalogue"},
		{"ES_ARRANGER_SETS_INDEX", ""},
		{"ES_ARRANGER_SETS_TYPE", ""},
		{"ES_INDEX", "esIndex of a catalogue"},
		{"ES_LOG", ""},
		{"GRAPHQL_FIELD", "documentType of a catalogue"},
		{"GRAPHQL_MAX_ALIASES", "maxAliases of a catalogue"},
		{"GRAPHQL_MAX_DEPTH", "maxDepth of a catalogue"},
		{"MAX_LIVE_VERSIONS", ""},
		{"MAX_RESULTS_WINDOW", "maxResultsWindow of a catalogue's table"},
		{"PING_MS", ""},
		{"PING_PATH", ""},
		{"READY_PATH", ""},
		{"ROW_ID_FIELD_NAME", "rowIdFieldName of a catalogue's table"},
		{"SEARCH_ENGINE", ""},
		{"SERVER_PORT", "server.listen"},
	}
}

// arranger copies the environment of an Arranger into keys that are not set in root.
type arranger struct {
	root      *setting.Node
	variables map[string]setting.EnvVariable
	// applied lists the copied keys with their variables.
	applied []string
}

// Arranger copies the variables of an Arranger into keys that root does not set. It reports whether NODE_ENV is production. Invalid values are
// found when root is decoded.
func Arranger(root *setting.Node, environ []string) (production bool, result Result) {
	a := &arranger{root: root, variables: map[string]setting.EnvVariable{}}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value = strings.TrimSpace(value); value != "" {
			a.variables[name] = setting.EnvVariable{Name: name, Value: value}
		}
	}
	a.apply(arrangerConfigs, a.variables[arrangerConfigs].Value, "catalogues", "dir")
	a.apply(arrangerHost, elasticNodes(a.variables[arrangerHost].Value), "index", "url")
	warning := a.credentials()
	a.apply(arrangerIntrospection, a.variables[arrangerIntrospection].Value, "catalogues", "disableGraphQLIntrospection")
	if warning != "" {
		result.Warnings = []string{warning}
	}
	production = a.variables[arrangerMode].Value == productionMode
	result.Notes = a.notes(production)
	return production, result
}

// notes lists what was copied, what production changes, and the unused variables.
func (a *arranger) notes(production bool) (notes []string) {
	if len(a.applied) > 0 {
		notes = append(notes, "configured by environment variables of Arranger: "+strings.Join(a.applied, ", "))
	}
	if production && a.root.Member("catalogues").Member("disableGraphQLIntrospection") == nil {
		notes = append(notes, fmt.Sprintf("%s is %s: GraphQL's introspection is off unless a catalogue, or catalogues.disableGraphQLIntrospection, sets it",
			arrangerMode, productionMode))
	}
	if unused := a.unused(); len(unused) > 0 {
		notes = append(notes, "these variables of Arranger are ignored: "+strings.Join(unused, ", "))
	}
	return notes
}

// apply sets a key from a variable, and records it when the key was not set.
func (a *arranger) apply(name, text string, path ...string) {
	v, ok := a.variables[name]
	if ok && text != "" && a.root.Fill(v, text, path...) {
		a.applied = append(a.applied, strings.Join(path, ".")+" from "+name)
	}
}

func (a *arranger) credentials() (warning string) {
	taken, warning := fillCredentials(a.root, a.variables[arrangerUser], a.variables[arrangerPassword])
	if taken {
		a.applied = append(a.applied, "index.username from "+arrangerUser, "index.password from "+arrangerPassword)
	}
	return warning
}

// unused names the variables that an Arranger would have read, with the equivalent setting. Their names are so common that they are
// only considered when one of Arranger's main variables is set.
func (a *arranger) unused() (names []string) {
	_, configs := a.variables[arrangerConfigs]
	_, host := a.variables[arrangerHost]
	if !configs && !host {
		return nil
	}
	for _, known := range arrangerIgnored() {
		name, instead := known[0], known[1]
		switch _, given := a.variables[name]; {
		case !given:
		case instead == "":
			names = append(names, name)
		default:
			names = append(names, name+" (here "+instead+")")
		}
	}
	return names
}

// elasticNodes returns a list of nodes in the format of index.url.
func elasticNodes(list string) string {
	nodes := setting.SplitList(list)
	for i, n := range nodes {
		nodes[i] = elasticNode(n)
	}
	return strings.Join(nodes, ",")
}

// elasticNode returns the URL of a node given as a URL, host or host:port.
func elasticNode(s string) string {
	if strings.Contains(s, "://") {
		return s
	}
	u, err := url.Parse("http://" + s)
	if err != nil || u.Port() != "" {
		return "http://" + s
	}
	u.Host = net.JoinHostPort(u.Hostname(), elasticPort)
	return u.String()
}
