// Elements of a page. Every text from the data goes through textContent.

function element(tag, properties = {}, ...inside) {
  const { className, text, ...attributes } = properties;
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}
