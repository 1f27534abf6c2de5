//! Ways in which connections authenticate: a catalogue, as data.
//!
//! An auth type says what a connection of its kind takes, and above all which members of `extra` are no secrets. It is
//! help for people and for forms; a connection without one works the same, with all of `extra` secret.

use podium_api::environment_objects::bodies::{ConnectionAuthType, ConnectionAuthTypeParameter};

/// A way in which connections of a kind authenticate.
#[derive(Debug)]
pub struct AuthType {
    /// Its id.
    pub id: &'static str,
    name: &'static str,
    description: &'static str,
    /// Airflow's type of the connections that it is for.
    pub airflow_type: &'static str,
    method: &'static str,
    provider: &'static str,
    parameters: &'static [Parameter],
}

#[derive(Debug)]
struct Parameter {
    name: &'static str,
    friendly: &'static str,
    description: &'static str,
    data_type: &'static str,
    example: &'static str,
    is_in_extra: bool,
    is_required: bool,
    is_secret: bool,
}

const fn text(name: &'static str, friendly: &'static str, description: &'static str) -> Parameter {
    Parameter {
        name,
        friendly,
        description,
        data_type: "string",
        example: "",
        is_in_extra: false,
        is_required: false,
        is_secret: false,
    }
}

impl Parameter {
    const fn example(mut self, example: &'static str) -> Self {
        self.example = example;
        self
    }

    const fn of_type(mut self, data_type: &'static str) -> Self {
        self.data_type = data_type;
        self
    }

    const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    const fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }

    const fn in_extra(mut self) -> Self {
        self.is_in_extra = true;
        self
    }
}

const HOST: Parameter = text("host", "Host", "Name or address of the server").required();
const PORT: Parameter = text("port", "Port", "Port of the server").of_type("number");
const LOGIN: Parameter = text("login", "User", "Who signs in").required();
const PASSWORD: Parameter = text("password", "Password", "Proves who signs in").required().secret();
const REGION: Parameter =
    text("region_name", "Region", "Region that is called").in_extra().example("eu-central-1");

/// The catalogue.
pub const AUTH_TYPES: &[AuthType] = &[
    AuthType {
        id: "postgres-password",
        name: "PostgreSQL",
        description: "A PostgreSQL database, by user and password",
        airflow_type: "postgres",
        method: "User and password",
        provider: "apache-airflow-providers-postgres",
        parameters: &[
            HOST,
            PORT.example("5432"),
            text("schema", "Database", "Database to connect to"),
            LOGIN,
            PASSWORD,
            text("sslmode", "TLS mode", "How the connection is encrypted").in_extra().example("verify-full"),
        ],
    },
    AuthType {
        id: "aws-access-key",
        name: "AWS",
        description: "AWS, by an access key",
        airflow_type: "aws",
        method: "Access key",
        provider: "apache-airflow-providers-amazon",
        parameters: &[
            text("login", "Access key id", "Id of the access key").required(),
            text("password", "Secret access key", "The key itself").required().secret(),
            REGION,
            text("aws_session_token", "Session token", "Goes with temporary keys").in_extra().secret(),
        ],
    },
    AuthType {
        id: "aws-assume-role",
        name: "AWS",
        description: "AWS, by a role that the deployment's identity assumes",
        airflow_type: "aws",
        method: "Assumed role",
        provider: "apache-airflow-providers-amazon",
        parameters: &[
            text("role_arn", "Role", "Role to assume")
                .in_extra()
                .required()
                .example("arn:aws:iam::123456789012:role/x"),
            REGION,
            text("external_id", "External id", "Asked for by the role").in_extra().secret(),
        ],
    },
    AuthType {
        id: "gcp-service-account-key",
        name: "GCP",
        description: "GCP, by the key of a service account",
        airflow_type: "google_cloud_platform",
        method: "Service account key",
        provider: "apache-airflow-providers-google",
        parameters: &[
            text("project", "Project", "Project that is worked in").in_extra(),
            text("scope", "Scopes", "What is asked for, separated by commas").in_extra(),
            text("keyfile_dict", "Key", "The key file's content")
                .in_extra()
                .required()
                .secret()
                .of_type("json"),
        ],
    },
    AuthType {
        id: "azure-client-secret",
        name: "Azure",
        description: "Azure, by the secret of an application",
        airflow_type: "azure",
        method: "Client secret",
        provider: "apache-airflow-providers-microsoft-azure",
        parameters: &[
            text("login", "Client id", "Id of the application").required(),
            text("password", "Client secret", "Secret of the application").required().secret(),
            text("tenantId", "Tenant", "Id of the tenant").in_extra().required(),
            text("subscriptionId", "Subscription", "Id of the subscription").in_extra().required(),
        ],
    },
    AuthType {
        id: "http-password",
        name: "HTTP",
        description: "An HTTP server, by user and password",
        airflow_type: "http",
        method: "User and password",
        provider: "apache-airflow-providers-http",
        parameters: &[HOST, PORT, text("schema", "Scheme", "http or https"), LOGIN, PASSWORD],
    },
    AuthType {
        id: "ssh-key",
        name: "SSH",
        description: "An SSH server, by a private key",
        airflow_type: "ssh",
        method: "Private key",
        provider: "apache-airflow-providers-ssh",
        parameters: &[
            HOST,
            PORT.example("22"),
            LOGIN,
            text("private_key", "Private key", "The key itself").in_extra().required().secret(),
            text("private_key_passphrase", "Passphrase", "Opens the key").in_extra().secret(),
            text("host_key", "Host key", "Public key of the server").in_extra(),
            text("conn_timeout", "Timeout", "Seconds to wait for the server").in_extra().of_type("number"),
        ],
    },
    AuthType {
        id: "kubernetes-config",
        name: "Kubernetes",
        description: "A Kubernetes cluster, by a configuration",
        airflow_type: "kubernetes",
        method: "Configuration",
        provider: "apache-airflow-providers-cncf-kubernetes",
        parameters: &[
            text("namespace", "Namespace", "Namespace that is worked in").in_extra(),
            text("cluster_context", "Context", "Context of the configuration").in_extra(),
            text("in_cluster", "In the cluster", "Use the identity of the pod instead")
                .in_extra()
                .of_type("boolean"),
            text("kube_config", "Configuration", "The configuration itself")
                .in_extra()
                .secret()
                .of_type("json"),
        ],
    },
];

/// The auth type of this id.
pub fn by_id(id: &str) -> Option<&'static AuthType> {
    AUTH_TYPES.iter().find(|auth_type| auth_type.id == id)
}

impl AuthType {
    /// Whether it names this member of `extra` as plain.
    pub fn shows(&self, member: &str) -> bool {
        self.parameters.iter().any(|known| known.is_in_extra && !known.is_secret && known.name == member)
    }

    /// As on the wire.
    pub fn on_the_wire(&self) -> ConnectionAuthType {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let parameter = |known: &Parameter| ConnectionAuthTypeParameter {
            airflow_param_name: known.name.into(),
            friendly_name: known.friendly.into(),
            description: known.description.into(),
            data_type: known.data_type.into(),
            example: given(known.example),
            pattern: None,
            is_in_extra: known.is_in_extra,
            is_required: known.is_required,
            is_secret: known.is_secret,
        };
        ConnectionAuthType {
            id: self.id.into(),
            name: self.name.into(),
            description: self.description.into(),
            airflow_type: self.airflow_type.into(),
            auth_method_name: self.method.into(),
            provider_package_name: self.provider.into(),
            provider_logo: None,
            guide_path: None,
            parameters: self.parameters.iter().map(parameter).collect(),
        }
    }
}
