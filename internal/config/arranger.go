package config

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// The variables of Arranger's environment that are read (doc.go). Other programs know some of these names too.
const (
	arrangerConfigs       = "CONFIGS_PATH"
	arrangerHost          = "ES_HOST"
	arrangerUser          = "ES_USER"
	arrangerPassword      = "ES_PASS"
	arrangerMode          = "NODE_ENV"
	arrangerIntrospection = "DISABLE_GRAPHQL_INTROSPECTION"
)

// ArrangerVariables are the names of Arranger's variables that are read, for who starts a process that shall not see them.
func ArrangerVariables() []string {
	return []string{arrangerConfigs, arrangerHost, arrangerUser, arrangerPassword, arrangerMode, arrangerIntrospection}
}

const (
	// productionMode is the one value of NODE_ENV that counts, in this case alone.
	productionMode = "production"
	// elasticPort is Elasticsearch's; who writes a host alone does not mean that of HTTP.
	elasticPort = "9200"
)

// arrangerUnread are the other variables that Arranger knows, in the order of their names, each with what says the same
// to tutti, "" for nothing.
func arrangerUnread() [][2]string {
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

// arranger moves the environment of an Arranger into what root does not say itself.
type arranger struct {
	root      *node
	variables map[string]variable
	// taken says what came from where.
	taken    []string
	warnings []string
}

// overlayArranger reads Arranger's variables into root where root says nothing. It reports whether NODE_ENV names a
// production, and returns what an operator should know: what was taken, and what was not. It never finds a fault; a value
// that is wrong is found when root is decoded.
func overlayArranger(root *node, environ []string) (production bool, warnings []string) {
	a := &arranger{root: root, variables: map[string]variable{}}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value = strings.TrimSpace(value); value != "" {
			a.variables[name] = variable{name, value}
		}
	}
	a.take(arrangerConfigs, a.variables[arrangerConfigs].value, "catalogues", "dir")
	a.take(arrangerHost, elasticNodes(a.variables[arrangerHost].value), "index", "url")
	a.credentials()
	a.take(arrangerIntrospection, a.variables[arrangerIntrospection].value, "catalogues", "disableGraphQLIntrospection")
	production = a.variables[arrangerMode].value == productionMode
	if len(a.taken) > 0 {
		a.warn("taken from the environment, as Arranger names it: %s", strings.Join(a.taken, ", "))
	}
	if production && root.member("catalogues").member("disableGraphQLIntrospection") == nil {
		a.warn("%s is %s: GraphQL's introspection is off unless a catalogue, or catalogues.disableGraphQLIntrospection, says otherwise",
			arrangerMode, productionMode)
	}
	a.unread()
	return production, a.warnings
}

func (a *arranger) warn(format string, args ...any) {
	a.warnings = append(a.warnings, fmt.Sprintf(format, args...))
}

// take fills a key from a variable, and notes it when that made a difference.
func (a *arranger) take(name, text string, path ...string) {
	v, ok := a.variables[name]
	if ok && text != "" && fill(a.root, v, text, path...) {
		a.taken = append(a.taken, strings.Join(path, ".")+" from "+name)
	}
}

func (a *arranger) credentials() {
	user, password := a.variables[arrangerUser], a.variables[arrangerPassword]
	taken, warning := fillCredentials(a.root, user, password)
	if taken {
		a.taken = append(a.taken, "index.username from "+arrangerUser, "index.password from "+arrangerPassword)
	}
	if warning != "" {
		a.warnings = append(a.warnings, warning)
	}
}

// unread names the variables that an Arranger would have read, with what says the same here. Their names are too plain to
// be Arranger's without one of those that say where it stands.
func (a *arranger) unread() {
	_, configs := a.variables[arrangerConfigs]
	_, host := a.variables[arrangerHost]
	if !configs && !host {
		return
	}
	var names []string
	for _, known := range arrangerUnread() {
		name, instead := known[0], known[1]
		switch _, given := a.variables[name]; {
		case !given:
		case instead == "":
			names = append(names, name)
		default:
			names = append(names, name+" (here "+instead+")")
		}
	}
	if len(names) > 0 {
		a.warn("these variables of Arranger are not read: %s", strings.Join(names, ", "))
	}
}

// elasticNodes returns a list of nodes as index.url has them.
func elasticNodes(list string) string {
	nodes := splitList(list)
	for i, n := range nodes {
		nodes[i] = elasticNode(n)
	}
	return strings.Join(nodes, ",")
}

// elasticNode returns the URL of a node that may be written as host or host:port.
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
