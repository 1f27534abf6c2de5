-- Tenants, people, programs and what they may do.
-- Times are milliseconds since the epoch; *_key columns are folded in the program, for uniqueness and sorting.

CREATE TABLE settings (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE signing_keys (
    id TEXT PRIMARY KEY,
    public_key BLOB NOT NULL,
    sealed_private_key BLOB,
    created_at BIGINT NOT NULL,
    retired_at BIGINT
);

-- The profile of whoever created or changed a thing; it outlives a deleted token.
CREATE TABLE subjects (
    id TEXT PRIMARY KEY,
    subject_type TEXT NOT NULL,
    username TEXT,
    full_name TEXT,
    avatar_url TEXT,
    api_token_name TEXT
);

CREATE TABLE organizations (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    billing_email TEXT NOT NULL,
    product TEXT NOT NULL,
    is_scim_enabled BOOLEAN NOT NULL,
    should_enforce_dedicated_clusters BOOLEAN NOT NULL,
    allow_enhanced_support_access BOOLEAN NOT NULL,
    has_ai_features_disabled BOOLEAN NOT NULL,
    authorization_epoch BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);

CREATE TABLE users (
    id TEXT PRIMARY KEY,
    username TEXT NOT NULL,
    username_key TEXT NOT NULL,
    full_name TEXT NOT NULL,
    avatar_url TEXT NOT NULL,
    password_hash TEXT,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX users_username ON users (username_key);

-- A user in an organization; the sort keys are copies, so that every order is a walk of one index.
CREATE TABLE memberships (
    organization_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    status TEXT NOT NULL,
    username_key TEXT NOT NULL,
    full_name_key TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, user_id)
);
CREATE INDEX memberships_user ON memberships (user_id, created_at);
CREATE INDEX memberships_created ON memberships (organization_id, created_at, user_id);
CREATE INDEX memberships_updated ON memberships (organization_id, updated_at, user_id);
CREATE INDEX memberships_username ON memberships (organization_id, username_key, user_id);
CREATE INDEX memberships_full_name ON memberships (organization_id, full_name_key, user_id);

CREATE TABLE invites (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    role TEXT NOT NULL,
    inviter_id TEXT NOT NULL,
    secret_hash TEXT,
    expires_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX invites_user ON invites (organization_id, user_id);
CREATE INDEX invites_of_user ON invites (user_id);
CREATE UNIQUE INDEX invites_secret ON invites (secret_hash);

CREATE TABLE teams (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    description TEXT NOT NULL,
    is_idp_managed BOOLEAN NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);
CREATE UNIQUE INDEX teams_name ON teams (organization_id, name_key);
CREATE INDEX teams_created ON teams (organization_id, created_at, id);
CREATE INDEX teams_updated ON teams (organization_id, updated_at, id);
CREATE INDEX teams_description ON teams (organization_id, description, id);

CREATE TABLE team_members (
    team_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (team_id, user_id)
);
CREATE INDEX team_members_user ON team_members (user_id, organization_id);
CREATE INDEX team_members_created ON team_members (team_id, created_at, user_id);

CREATE TABLE custom_roles (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    description TEXT NOT NULL,
    scope_type TEXT NOT NULL,
    permissions TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);
CREATE UNIQUE INDEX custom_roles_name ON custom_roles (organization_id, name_key);
CREATE INDEX custom_roles_created ON custom_roles (organization_id, created_at, id);
CREATE INDEX custom_roles_updated ON custom_roles (organization_id, updated_at, id);
CREATE INDEX custom_roles_description ON custom_roles (organization_id, description, id);
CREATE INDEX custom_roles_scope ON custom_roles (organization_id, scope_type, id);

CREATE TABLE custom_role_workspaces (
    role_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    PRIMARY KEY (role_id, workspace_id)
);
CREATE INDEX custom_role_workspaces_workspace ON custom_role_workspaces (workspace_id);

-- Every role that anybody holds: subject × thing → role. entity_id is an organization, workspace, deployment, DAG
-- or tag; deployment_id is '' unless the thing is in a deployment, workspace_id is '' for organization roles.
CREATE TABLE grants (
    organization_id TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    subject_type TEXT NOT NULL,
    scope_type TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    deployment_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    role TEXT NOT NULL,
    custom_role_id TEXT,
    PRIMARY KEY (organization_id, subject_id, scope_type, deployment_id, entity_id, role)
);
CREATE INDEX grants_entity ON grants (organization_id, scope_type, entity_id, subject_id);
CREATE INDEX grants_workspace ON grants (workspace_id);
CREATE INDEX grants_deployment ON grants (deployment_id);
CREATE INDEX grants_custom_role ON grants (custom_role_id);

CREATE TABLE api_tokens (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    deployment_id TEXT NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    description TEXT NOT NULL,
    kind TEXT NOT NULL,
    short_token TEXT NOT NULL,
    expiry_period_in_days BIGINT,
    start_at BIGINT NOT NULL,
    end_at BIGINT,
    last_rotated_at BIGINT,
    last_used_at BIGINT,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);
CREATE UNIQUE INDEX api_tokens_name ON api_tokens (organization_id, entity_id, name_key);
CREATE INDEX api_tokens_by_name ON api_tokens (organization_id, name_key, id);
CREATE INDEX api_tokens_created ON api_tokens (organization_id, created_at, id);
CREATE INDEX api_tokens_updated ON api_tokens (organization_id, updated_at, id);
CREATE INDEX api_tokens_started ON api_tokens (organization_id, start_at, id);
CREATE INDEX api_tokens_description ON api_tokens (organization_id, description, id);
CREATE INDEX api_tokens_workspace ON api_tokens (workspace_id);
CREATE INDEX api_tokens_deployment ON api_tokens (deployment_id);

-- What opens the door: the hash of every living token's value.
CREATE TABLE credentials (
    hash TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    token_id TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    organization_id TEXT,
    signing_key_id TEXT NOT NULL,
    expires_at BIGINT
);
CREATE INDEX credentials_token ON credentials (token_id);
CREATE INDEX credentials_subject ON credentials (subject_id);
CREATE INDEX credentials_expiry ON credentials (expires_at);
CREATE INDEX credentials_signing_key ON credentials (signing_key_id);

CREATE TABLE workspaces (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    description TEXT NOT NULL,
    cicd_enforced_default BOOLEAN NOT NULL,
    default_cluster_id TEXT,
    default_cloud_provider TEXT,
    default_region TEXT,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);
CREATE UNIQUE INDEX workspaces_name ON workspaces (organization_id, name_key);
CREATE INDEX workspaces_created ON workspaces (organization_id, created_at, id);
CREATE INDEX workspaces_updated ON workspaces (organization_id, updated_at, id);

-- What roles and workspaces refer to; the rest of these two comes with their operations.
CREATE TABLE clusters (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL
);
CREATE TABLE cluster_workspaces (
    cluster_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    PRIMARY KEY (cluster_id, workspace_id)
);
CREATE INDEX cluster_workspaces_workspace ON cluster_workspaces (workspace_id);
CREATE TABLE deployments (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL
);
CREATE INDEX deployments_workspace ON deployments (workspace_id);

CREATE TABLE allowed_ip_address_ranges (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    ip_address_range TEXT NOT NULL,
    ip_address_key TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);
CREATE UNIQUE INDEX allowed_ip_address_ranges_range ON allowed_ip_address_ranges (organization_id, ip_address_key);
CREATE INDEX allowed_ip_address_ranges_created ON allowed_ip_address_ranges (organization_id, created_at, id);
CREATE INDEX allowed_ip_address_ranges_updated ON allowed_ip_address_ranges (organization_id, updated_at, id);

CREATE TABLE audit_records (
    organization_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    id TEXT NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (organization_id, at, id)
);
CREATE INDEX audit_records_at ON audit_records (at);

-- Every change, in order: caches, replicas and followers read it. The order is (transaction_id, sequence).
CREATE TABLE changes (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    transaction_id BIGINT NOT NULL DEFAULT 0,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    organization_id TEXT,
    workspace_id TEXT,
    deployment_id TEXT,
    version BIGINT NOT NULL
);
CREATE INDEX changes_order ON changes (transaction_id, sequence);
CREATE INDEX changes_at ON changes (at);

-- Answers kept for repeats of a request under the same Idempotency-Key.
CREATE TABLE kept_answers (
    subject_id TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    target TEXT NOT NULL,
    key TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    version BIGINT,
    body BLOB NOT NULL,
    is_sealed BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (subject_id, operation_id, target, key)
);
CREATE INDEX kept_answers_created ON kept_answers (created_at);

-- Totals of the unfiltered lists, in shards so that concurrent writers seldom meet. `disorder` counts what moves
-- the rank of older rows: removals, and inserts that are not the newest.
CREATE TABLE counters (
    organization_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    shard BIGINT NOT NULL,
    total BIGINT NOT NULL,
    disorder BIGINT NOT NULL,
    PRIMARY KEY (organization_id, kind, shard)
);
