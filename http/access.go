package http

// access says who may use a route while tokens are asked for (CONTRACT section 6).
type access struct {
	kind accessKind
	// organization names the path parameter whose organization's write scope is enough; of accessOrganization alone.
	organization string
}

type accessKind int

const (
	// accessOpen: anybody, without a token.
	accessOpen accessKind = iota
	// accessToken: anybody with a valid token; what it sees is narrowed by the handler.
	accessToken
	// accessSystem: the system's write scope.
	accessSystem
	// accessOrganization: the write scope of the organization in the path, or the system's.
	accessOrganization
	// accessSigned: the signature of the body, checked by the handler, else the system's write scope.
	accessSigned
)

func open() access   { return access{kind: accessOpen} }
func token() access  { return access{kind: accessToken} }
func system() access { return access{kind: accessSystem} }
func signed() access { return access{kind: accessSigned} }

// writerOf asks for the write scope of the organization that a path parameter names.
func writerOf(param string) access { return access{kind: accessOrganization, organization: param} }
