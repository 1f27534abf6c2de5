// Sends the secret of an invite's link along with what the form says. It leaves the address first.
const form = document.getElementById("form");
const status = document.getElementById("status");
const button = form.querySelector("button");
const token = new URLSearchParams(location.search).get("token");
history.replaceState(null, "", location.pathname);

if (!token) {
  status.textContent = "This link is incomplete: copy it again from your invite.";
  button.disabled = true;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  status.textContent = "One moment…";
  try {
    const response = await fetch(form.dataset.to, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token, fullName: form.fullName.value, password: form.password.value }),
    });
    const body = await response.json();
    if (response.ok) {
      const done = "Your account is ready. Sign in with your e-mail address and the password that you chose.";
      form.replaceChildren(Object.assign(document.createElement("p"), { textContent: done }));
      return;
    }
    status.textContent = (body.fieldErrors || []).map((f) => `${f.field}: ${f.message}`).join(" ") || body.message;
  } catch {
    status.textContent = "The server could not be reached: try again.";
  }
  button.disabled = false;
});
