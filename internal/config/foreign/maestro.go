package foreign

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/base/setting"
)

// The variables of Maestro's environment (doc.go). Maestro 4 is a Spring program: words of a name may be joined with or without
// underscores, or written in lower case with dots, hyphens and brackets; Maestro 5 has one form.
const (
	maestroPrefix = "MAESTRO_"
	streamPrefix  = "SPRING_CLOUD_STREAM_"
	// repositoriesPrefix and elasticPrefix identify Maestro's environment: there are other programs with that name.
	repositoriesPrefix = maestroPrefix + "REPOSITORIES_"
	elasticPrefix      = maestroPrefix + "ELASTICSEARCH_"
)

// maestroSections are the parts of Maestro's environment whose unknown variables are reported.
func maestroSections() []string {
	return []string{
		"REPOSITORIES", "ELASTICSEARCH", "KAFKA", "SONG", "FAILURELOG", "NOTIFICATIONS", "DISABLE", "WEBCLIENT",
		"LOGGING", "SERVER", "OPENAPI",
	}
}

// maestro copies the environment of a Maestro into keys that are not set in root.
type maestro struct {
	root *setting.Node
	// variables are keyed by their name without underscores, those of a repository by the rest of their name.
	variables    map[string]setting.EnvVariable
	repositories map[int]map[string]setting.EnvVariable
	// order holds the sorted names, so that the order of warnings is stable.
	order    []string
	kafka    maestroKafka
	warnings []string
}

// Maestro copies the variables of a Maestro into keys that root does not set. Invalid values are found when root is decoded.
func Maestro(root *setting.Node, environ []string) Result {
	m := &maestro{root: root, variables: map[string]setting.EnvVariable{}, repositories: map[int]map[string]setting.EnvVariable{}}
	if !m.collect(environ) {
		return Result{}
	}
	m.elastic()
	m.takeKafka()
	m.takeRepositories()
	m.logLevel()
	return Result{Warnings: m.warnings, Notes: m.unused()}
}

// collect groups the variables; it reports false when none is Maestro's.
func (m *maestro) collect(environ []string) bool {
	names := map[string]setting.EnvVariable{}
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		value = strings.TrimSpace(value)
		if known := springName(name); ok && value != "" &&
			(strings.HasPrefix(known, maestroPrefix) || strings.HasPrefix(known, streamPrefix)) {
			if _, twice := names[known]; !twice {
				names[known] = setting.EnvVariable{Name: name, Value: value}
				m.order = append(m.order, known)
			}
		}
	}
	slices.SortFunc(m.order, setting.NaturalCompare)
	found := false
	for _, known := range m.order {
		found = found || strings.HasPrefix(known, repositoriesPrefix) || strings.HasPrefix(known, elasticPrefix)
		if i, rest, ok := repositoryVariable(known); ok {
			if m.repositories[i] == nil {
				m.repositories[i] = map[string]setting.EnvVariable{}
			}
			keepFirst(m.repositories[i], rest, names[known])
		} else {
			keepFirst(m.variables, withoutUnderscores(strings.TrimPrefix(known, maestroPrefix)), names[known])
		}
	}
	return found
}

// springName returns a name in the format of an environment variable: maestro.repositories[0].code is MAESTRO_REPOSITORIES_0_CODE.
func springName(name string) string {
	return strings.ToUpper(strings.NewReplacer(".", "_", "[", "_", "]", "", "-", "").Replace(name))
}

func withoutUnderscores(name string) string { return strings.ReplaceAll(name, "_", "") }

func repositoryVariable(name string) (i int, rest string, ok bool) {
	rest, ok = strings.CutPrefix(name, repositoriesPrefix)
	if !ok {
		return 0, "", false
	}
	number, rest, _ := strings.Cut(rest, "_")
	i, ok = setting.IndexOf(number)
	return i, withoutUnderscores(rest), ok
}

func keepFirst(variables map[string]setting.EnvVariable, name string, v setting.EnvVariable) {
	if _, twice := variables[name]; !twice {
		variables[name] = v
	}
}

// take returns a variable and marks it as used.
func (m *maestro) take(name string) (setting.EnvVariable, bool) { return takeFrom(m.variables, name) }

func takeFrom(variables map[string]setting.EnvVariable, name string) (setting.EnvVariable, bool) {
	v, ok := variables[name]
	delete(variables, name)
	return v, ok
}

// takeFirst takes all variables of names and returns the first that is set.
func (m *maestro) takeFirst(names ...string) (setting.EnvVariable, bool) {
	var first setting.EnvVariable
	found := false
	for _, name := range names {
		if v, ok := m.take(name); ok && !found {
			first, found = v, true
		}
	}
	return first, found
}

// switched returns the value of a flag; given is false when it is not set. A value that is not a boolean is left for the warning of
// unsupported variables.
func (m *maestro) switched(name string) (on, given bool) {
	text := strings.ToLower(m.variables[name].Value)
	if text == "on" || text == "off" {
		on, given = text == "on", true
	} else {
		on, given = setting.ParseBool(text)
	}
	if given {
		delete(m.variables, name)
	}
	return on, given
}

func (m *maestro) warn(format string, args ...any) {
	m.warnings = append(m.warnings, fmt.Sprintf(format, args...))
}

// elastic copies the index's nodes and credentials.
func (m *maestro) elastic() {
	if v, ok := m.nodes(); ok {
		m.root.Fill(v, v.Value, "index", "url")
	}
	m.credentials()
	if v, ok := m.take("ELASTICSEARCHVERSION"); ok && v.Value != "7" && v.Value != "8" {
		m.warn("%s is %s, but tutti needs Elasticsearch 7.17 or later", v.Name, v.Value)
	}
	for _, name := range []string{"ELASTICSEARCHCLIENTTRUSTSELFSIGNEDCERT", "ELASTICSEARCHCLIENTTRUSTSELFSIGNCERT"} {
		v := m.variables[name]
		if on, given := m.switched(name); given && on {
			m.warn("%s is not supported: set the certificate authority with index.caFile", v.Name)
		}
	}
}

// nodes returns all nodes in the format of index.url.
func (m *maestro) nodes() (setting.EnvVariable, bool) {
	prefix, _ := m.take("ELASTICSEARCHPATHPREFIX")
	first, found := m.takeFirst("ELASTICSEARCHNODES", "ELASTICSEARCHCLUSTERNODES")
	nodes := setting.SplitList(first.Value)
	for i := 0; ; i++ {
		v, ok := m.take("ELASTICSEARCHCLUSTERNODES" + strconv.Itoa(i))
		if !ok {
			break
		}
		if !found {
			first, found = v, true
		}
		nodes = append(nodes, v.Value)
	}
	for i, n := range nodes {
		nodes[i] = withScheme(n)
		if path := strings.Trim(prefix.Value, "/"); path != "" {
			nodes[i] = strings.TrimSuffix(nodes[i], "/") + "/" + path
		}
	}
	return setting.EnvVariable{Name: first.Name, Value: strings.Join(nodes, ",")}, found
}

// withScheme returns a URL given as a URL or host:port, which means http for Maestro's clients.
func withScheme(s string) string {
	if strings.Contains(s, "://") {
		return s
	}
	return "http://" + s
}

func (m *maestro) credentials() {
	on, given := m.switched("ELASTICSEARCHCLIENTBASICAUTHENABLED")
	user, _ := m.take("ELASTICSEARCHCLIENTBASICAUTHUSER")
	password, _ := m.take("ELASTICSEARCHCLIENTBASICAUTHPASSWORD")
	if given && !on {
		return
	}
	if _, warning := fillCredentials(m.root, user, password); warning != "" {
		m.warnings = append(m.warnings, warning)
	}
}

// fillCredentials sets the credentials of the index, unless root sets any of them. They are used completely or not at all. A variable
// that is not set has no name.
func fillCredentials(root *setting.Node, user, password setting.EnvVariable) (taken bool, warning string) {
	if user.Name == "" && password.Name == "" {
		return false, ""
	}
	index := root.Member("index")
	for _, own := range []string{"username", "password", "passwordFile", "apiKey", "apiKeyFile"} {
		if index.Member(own) != nil {
			return false, ""
		}
	}
	switch url := index.Member("url"); {
	case url == nil || url.Text == "":
		return false, firstOf(user, password).Name + " is ignored: no Elasticsearch node is configured"
	case password.Name == "":
		return false, user.Name + " is ignored: the password is missing"
	case user.Name == "":
		return false, password.Name + " is ignored: the user is missing"
	default:
		root.Fill(user, user.Value, "index", "username")
		root.Fill(password, password.Value, "index", "password")
		return true, ""
	}
}

func firstOf(a, b setting.EnvVariable) setting.EnvVariable {
	if a.Name != "" {
		return a
	}
	return b
}

func (m *maestro) logLevel() {
	v, ok := m.takeFirst("LOGGINGLEVEL", "LOGGINGLEVELROOT")
	if !ok {
		return
	}
	switch level := strings.ToLower(v.Value); level {
	case "trace":
		m.root.Fill(v, "debug", "log", "level")
	case "fatal":
		m.root.Fill(v, "error", "log", "level")
	case "debug", "info", "warn", "error":
		m.root.Fill(v, level, "log", "level")
	default:
		m.warn("%s is ignored: %s is not a level of tutti", v.Name, v.Value)
	}
}

// unused names the unused variables, of what is Maestro's without doubt.
func (m *maestro) unused() []string {
	var names []string
	for _, known := range m.order {
		if i, rest, ok := repositoryVariable(known); ok {
			if v, left := takeFrom(m.repositories[i], rest); left {
				names = append(names, v.Name)
			}
			continue
		}
		name := withoutUnderscores(strings.TrimPrefix(known, maestroPrefix))
		section := slices.ContainsFunc(maestroSections(), func(s string) bool { return strings.HasPrefix(name, s) })
		if v, left := m.take(name); left && (section || strings.HasPrefix(known, streamPrefix)) {
			names = append(names, v.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"these variables of Maestro are not supported and are ignored: " + strings.Join(names, ", ")}
}
