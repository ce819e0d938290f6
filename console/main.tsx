/** The operator's console: it is rendered into the page that the platform serves under `/console`. */
import { render } from 'preact';
import { App } from './app.tsx';

const root = document.getElementById('console');
if (root !== null) render(<App />, root);
