export { surveyCanvas } from './canvasSurvey';
export { launchChromium, openWindow } from './chromium';
export { CredentialForm } from './credentialForm';
export { docsImage } from './docsImage';
export { drawnWidth } from './drawnWidth';
export { Editor } from './editor';
export { NodePanel } from './nodePanel';
