package auth

import "tutti/internal/core"

func unauthenticated(message, hint string) error {
	return &core.Error{Code: core.CodeUnauthenticated, Message: message, Hint: hint}
}

// errUnknownKey is the same for an unknown key and for a wrong secret.
func errUnknownKey() error {
	return unauthenticated("the API key is unknown", "check that it was copied completely; it starts with "+keyPrefix)
}
