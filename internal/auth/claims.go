package auth

import (
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// scopesOf returns the scopes of the claims scope, scp and context.scope (RFC 8693, section 4.2; the others are used by Microsoft and
// Ego), and the permissions of a requesting party token of Keycloak. Other types grant nothing.
func scopesOf(claims jwt.MapClaims) []string {
	context, _ := claims["context"].(map[string]any)
	permissions, _ := permissionsOf(claims)
	scopes := slices.Concat(scopeList(claims["scope"]), scopeList(claims["scp"]), scopeList(context["scope"]), permissions)
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// scopeList returns the scopes of a list or a string separated by spaces.
func scopeList(claim any) []string {
	var scopes []string
	switch v := claim.(type) {
	case string:
		scopes = strings.FieldsFunc(v, func(c rune) bool { return c == ' ' })
	case []any:
		for _, one := range v {
			if s, ok := one.(string); ok && s != "" {
				scopes = append(scopes, s)
			}
		}
	}
	return scopes
}

// permissionsOf returns the scopes of the claim authorization.permissions; false when there is no such claim. The result is not nil
// when there is one.
func permissionsOf(claims jwt.MapClaims) ([]string, bool) {
	authorization, _ := claims["authorization"].(map[string]any)
	permissions, ok := authorization["permissions"].([]any)
	if !ok {
		return nil, false
	}
	return permissionScopes(permissions), true
}

// permissionScopes returns the scopes of permissions in Keycloak's format, {rsname, scopes}: the resource's name, a dot and each of the
// permission's scopes, as Song reads them. The result is not nil.
func permissionScopes(permissions []any) []string {
	scopes := []string{}
	for _, one := range permissions {
		permission, _ := one.(map[string]any)
		resource, _ := permission["rsname"].(string)
		if resource == "" {
			continue
		}
		for _, scope := range scopeList(permission["scopes"]) {
			scopes = append(scopes, resource+"."+scope)
		}
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// rolesOf returns the roles in realm_access, and those in resource_access of clients: other clients' roles are not about this service.
func rolesOf(claims jwt.MapClaims, clients ...string) []string {
	realm, _ := claims["realm_access"].(map[string]any)
	roles := scopeList(realm["roles"])
	resources, _ := claims["resource_access"].(map[string]any)
	for _, client := range clients {
		resource, _ := resources[client].(map[string]any)
		roles = append(roles, scopeList(resource["roles"])...)
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}
