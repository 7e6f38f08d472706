package httpapi

import (
	"net/http"
)

// routes is the table of transports-and-http.md §4.10. Paths without variable parts come first: they
// hide objects of the same name.
func (s *Server) routes() *router {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	t := newRouter()
	public := func(path string, handlers map[string]handler) *route {
		r := t.at(path, handlers)
		r.public = true
		return r
	}
	public("/ping", map[string]handler{get: ping}).unmarked = true
	public("/users/login", map[string]handler{post: login})
	public("/users/refresh-token", map[string]handler{post: refresh})
	public("/personal-access-tokens/login", map[string]handler{post: tokenLogin})
	if s.cfg.Metrics != "" {
		t.at(s.cfg.Metrics, map[string]handler{get: metrics})
	}
	t.at("/users/logout", map[string]handler{del: logout})
	t.at("/users", map[string]handler{get: getUsers, post: createUser})
	t.at("/users/{user}", map[string]handler{get: getUser, put: updateUser, del: deleteUser})
	t.at("/users/{user}/password", map[string]handler{put: changePassword})
	t.at("/users/{user}/permissions", map[string]handler{put: updatePermissions})
	t.at("/personal-access-tokens", map[string]handler{get: getTokens, post: createToken})
	t.at("/personal-access-tokens/{name}", map[string]handler{del: deleteToken})

	t.at("/streams", map[string]handler{get: getStreams, post: createStream})
	t.at("/streams/{stream}", map[string]handler{get: getStream, put: updateStream, del: deleteStream})
	t.at("/streams/{stream}/purge", map[string]handler{del: purgeStream})
	t.at("/streams/{stream}/topics", map[string]handler{get: getTopics, post: createTopic})
	const topic = "/streams/{stream}/topics/{topic}"
	t.at(topic, map[string]handler{get: getTopic, put: updateTopic, del: deleteTopic})
	t.at(topic+"/purge", map[string]handler{del: purgeTopic})
	t.at(topic+"/partitions", map[string]handler{post: createPartitions, del: deletePartitions})
	t.at(topic+"/partitions/{partition}", map[string]handler{del: deleteSegments})
	t.at(topic+"/consumer-groups", map[string]handler{get: getGroups, post: createGroup})
	t.at(topic+"/consumer-groups/{group}", map[string]handler{get: getGroup, del: deleteGroup})
	t.at(topic+"/messages", map[string]handler{get: poll, post: produce})
	t.at(topic+"/consumer-offsets", map[string]handler{get: getOffset, put: storeOffset})
	t.at(topic+"/consumer-offsets/{consumer}", map[string]handler{del: deleteOffset})

	t.at("/stats", map[string]handler{get: getStats})
	t.at("/options/{scope}", map[string]handler{get: getOptions})
	t.at("/snapshot", map[string]handler{post: snapshot})
	t.at("/cluster/metadata", map[string]handler{get: getClusterMetadata})
	t.at("/clients", map[string]handler{get: getClients})
	t.at("/clients/{client}", map[string]handler{get: getClient})
	return t
}
